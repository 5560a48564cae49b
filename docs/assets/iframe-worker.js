// Search from a file on disk: browsers start no workers there, so the script of the worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "search"
      this.ready = new Promise((resolve) => {
        frame.onload = () => {
          const inside = frame.contentWindow
          const load = (source) =>
            new Promise((loaded, failed) => {
              const script = inside.document.createElement("script")
              script.src = source
              script.onload = loaded
              script.onerror = failed
              inside.document.head.append(script)
            })
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          inside.importScripts = (...sources) => sources.reduce((done, one) => done.then(() => load(one)), Promise.resolve())
          load(url).then(() => resolve(inside))
        }
      })
      document.documentElement.append(frame)
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
