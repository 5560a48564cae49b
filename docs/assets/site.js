// Wide tables scroll; with this they can be scrolled from the keyboard too.
addEventListener("load", () => document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap) => (wrap.tabIndex = 0)))
