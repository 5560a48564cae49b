// A reliability diagram to play with. Everything is computed here: exact binomial limits, and rows drawn from a known truth.
// The limits are those of BinningCalibrator.from_tally(...); a test compares them.
(() => {
  "use strict"

  // --- limits ------------------------------------------------------------------------------------------------------

  const LANCZOS = [
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ]

  function logGamma(x) {
    const y = x - 1
    let sum = 0.99999999999980993
    LANCZOS.forEach((factor, index) => (sum += factor / (y + index + 1)))
    const t = y + LANCZOS.length - 0.5
    return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum)
  }

  // The continued fraction of the incomplete beta function, by Lentz's method.
  function fraction(a, b, x) {
    const tiny = 1e-300
    const kept = (value) => (Math.abs(value) < tiny ? tiny : value)
    let c = 1
    let d = 1 / kept(1 - ((a + b) * x) / (a + 1))
    let result = d
    for (let m = 1; m < 100000; m++) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
      d = 1 / kept(1 + even * d)
      c = kept(1 + even / c)
      result *= c * d
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
      d = 1 / kept(1 + odd * d)
      c = kept(1 + odd / c)
      result *= c * d
      if (Math.abs(c * d - 1) < 1e-15) break
    }
    return result
  }

  function betaCdf(a, b, x) {
    if (x <= 0) return 0
    if (x >= 1) return 1
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x))
    return x < (a + 1) / (a + b + 2) ? (front * fraction(a, b, x)) / a : 1 - (front * fraction(b, a, 1 - x)) / b
  }

  function betaQuantile(a, b, level) {
    let low = 0
    let high = 1
    for (let step = 0; step < 100 && high - low > 1e-14; step++) {
      const middle = (low + high) / 2
      if (betaCdf(a, b, middle) < level) low = middle
      else high = middle
    }
    return (low + high) / 2
  }

  // Clopper-Pearson: each side is missed with probability at most `tail`.
  function limits(positives, rows, tail) {
    return [
      positives === 0 ? 0 : betaQuantile(positives, rows - positives + 1, tail),
      positives === rows ? 1 : betaQuantile(positives + 1, rows - positives, 1 - tail),
    ]
  }

  // All bins at once: they share 95 % of alpha (Sidak); 5 % is kept for statements about their share of rows.
  function guarantee(counts, positives, confidence) {
    const tail = -Math.expm1(Math.log1p(-0.95 * (1 - confidence)) / counts.length) / 2
    const bins = counts.map((rows, bin) => {
      const [lower, upper] = rows ? limits(positives[bin], rows, tail) : [0, 1]
      const value = (positives[bin] + 0.5) / (rows + 1)
      return { rows, lower, upper, value, epsilon: Math.max(upper - value, value - lower) }
    })
    return { bins, epsilon: Math.max(...bins.map((bin) => bin.epsilon)) }
  }

  // --- a known truth -----------------------------------------------------------------------------------------------

  const SPREAD = 1.5 // of the scores, on the logit scale
  const expit = (z) => 1 / (1 + Math.exp(-z))
  const logit = (p) => Math.log(p / (1 - p))

  // The normal quantile, by bisection of its distribution function (Abramowitz and Stegun 26.2.17 is enough to draw).
  function normalCdf(z) {
    const t = 1 / (1 + 0.2316419 * Math.abs(z))
    const poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    const tail = (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * poly
    return z > 0 ? 1 - tail : tail
  }

  function normalQuantile(level) {
    let low = -8
    let high = 8
    for (let step = 0; step < 60; step++) {
      const middle = (low + high) / 2
      if (normalCdf(middle) < level) low = middle
      else high = middle
    }
    return (low + high) / 2
  }

  // Scores spread around the base rate; the truth is flatter than the scores say, or steeper.
  function world(settings) {
    const centre = logit(settings.base)
    const parts = 40
    const edges = []
    for (let bin = 1; bin < settings.bins; bin++) edges.push(normalQuantile(bin / settings.bins))
    const bins = []
    for (let bin = 0; bin < settings.bins; bin++) {
      let truth = 0
      let score = 0
      for (let part = 0; part < parts; part++) {
        const z = normalQuantile((bin + (part + 0.5) / parts) / settings.bins)
        truth += expit(centre + settings.slope * SPREAD * z) / parts
        score += expit(centre + SPREAD * z) / parts
      }
      bins.push({ truth, score })
    }
    return bins
  }

  // mulberry32: small, and the same in every browser
  function generator(seed) {
    let state = seed >>> 0
    return () => {
      state = (state + 0x6d2b79f5) >>> 0
      let t = Math.imul(state ^ (state >>> 15), 1 | state)
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296
    }
  }

  function draw(truth, rows, random) {
    const counts = new Array(truth.length).fill(0)
    const positives = new Array(truth.length).fill(0)
    for (let row = 0; row < rows; row++) {
      const bin = Math.floor(random() * truth.length)
      counts[bin] += 1
      positives[bin] += random() < truth[bin].truth ? 1 : 0
    }
    return { counts, positives }
  }

  const holds = (found, truth) =>
    found.bins.every((bin, index) => bin.lower <= truth[index].truth && truth[index].truth <= bin.upper)

  // --- the page ----------------------------------------------------------------------------------------------------

  const SLIDERS = [
    { name: "rows", label: "Labelled rows", from: 1.7, to: 5, step: 0.1, start: 3.3, value: (x) => Number((10 ** x).toPrecision(2)) },
    { name: "bins", label: "Bins", from: 1, to: 40, step: 1, start: 10, value: (x) => x },
    { name: "confidence", label: "Confidence", from: 0.5, to: 0.99, step: 0.01, start: 0.9, value: (x) => x },
    { name: "base", label: "Base rate", from: -2.3, to: -0.3, step: 0.05, start: -0.6, value: (x) => 10 ** x },
    { name: "slope", label: "True slope", from: 0.2, to: 1.8, step: 0.1, start: 0.6, value: (x) => x },
  ]
  const WORDS = {
    rows: (x) => x.toLocaleString("en"),
    bins: (x) => String(x),
    confidence: (x) => `${Math.round(100 * x)}%`,
    base: (x) => x.toPrecision(2),
    slope: (x) => `${x.toFixed(1)}${x < 0.95 ? " (overconfident)" : x > 1.05 ? " (underconfident)" : " (calibrated)"}`,
  }
  const WIDTH = 640
  const HEIGHT = 420
  const MARGIN = 48
  const TOPS = [0.02, 0.04, 0.08, 0.2, 0.4, 0.6, 0.8] // where the axes end, if not at 1

  function element(name, attributes, text) {
    const made = name.startsWith("svg:")
      ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
      : document.createElement(name)
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value))
    if (text !== undefined) made.textContent = text
    return made
  }

  function picture(svg, truth, found) {
    svg.replaceChildren()
    const highest = Math.max(...found.bins.filter((bin) => bin.rows).map((bin) => bin.upper), truth.at(-1).score)
    const top = TOPS.find((one) => one >= highest) ?? 1
    const x = (value) => MARGIN + (value / top) * (WIDTH - 2 * MARGIN)
    const y = (value) => HEIGHT - MARGIN - (value / top) * (HEIGHT - 2 * MARGIN)
    const add = (name, attributes, text) => svg.append(element(`svg:${name}`, attributes, text))
    for (let tick = 0; tick <= 4; tick++) {
      const value = (top * tick) / 4
      add("text", { x: x(value), y: HEIGHT - MARGIN + 18, "text-anchor": "middle", class: "play-text" }, value.toFixed(top < 0.1 ? 3 : 2))
      add("text", { x: MARGIN - 8, y: y(value) + 4, "text-anchor": "end", class: "play-text" }, value.toFixed(top < 0.1 ? 3 : 2))
      add("line", { x1: x(0), x2: x(top), y1: y(value), y2: y(value), class: "play-grid" })
    }
    add("line", { x1: x(0), y1: y(0), x2: x(top), y2: y(top), class: "play-diagonal" })
    const line = truth.map((bin) => `${x(bin.score)},${y(bin.truth)}`).join(" ")
    found.bins.forEach((bin, index) => {
      const at = x(truth[index].score)
      const inside = bin.lower <= truth[index].truth && truth[index].truth <= bin.upper
      const kind = inside ? "play-interval" : "play-interval play-missed"
      add("line", { x1: at, x2: at, y1: y(bin.lower), y2: y(Math.min(bin.upper, top)), class: kind })
      add("circle", { cx: at, cy: y(Math.min(bin.value, top)), r: 4, class: "play-value" })
    })
    add("polyline", { points: line, class: "play-truth" })
    add("text", { x: WIDTH / 2, y: HEIGHT - 8, "text-anchor": "middle", class: "play-text" }, "average score in the bin")
    add("text", { x: MARGIN, y: MARGIN - 16, class: "play-text" }, "share of positives")
  }

  function start(root) {
    const form = element("div", { class: "play-form" })
    const svg = element("svg:svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Reliability diagram" })
    const sentence = element("p", { class: "play-sentence", "aria-live": "polite" })
    const coverage = element("p", { class: "play-coverage", "aria-live": "polite" })
    let seed = 1

    const settings = () =>
      Object.fromEntries(SLIDERS.map((slider) => [slider.name, slider.value(Number(form.querySelector(`#play-${slider.name}`).value))]))

    function show() {
      const chosen = settings()
      SLIDERS.forEach(({ name }) => (form.querySelector(`#play-${name}-shown`).textContent = WORDS[name](chosen[name])))
      const truth = world(chosen)
      const seen = draw(truth, chosen.rows, generator(seed))
      const found = guarantee(seen.counts, seen.positives, chosen.confidence)
      picture(svg, truth, found)
      const points = Math.ceil(found.epsilon * 1000 - 1e-9) / 10
      const each = chosen.bins === 1 ? "Over all scores" : `In each of ${chosen.bins} score ranges`
      const together = chosen.bins === 1 ? "" : ", all ranges together"
      sentence.textContent =
        `${each}, the true rate is within ${points} points of the prediction ` +
        `(${WORDS.confidence(chosen.confidence)} confidence${together}, if new rows are like these).`
      root.dataset.epsilon = String(found.epsilon)
      coverage.textContent = ""
    }

    function repeat() {
      const chosen = settings()
      const truth = world(chosen)
      const random = generator(seed + 1000)
      const draws = 200
      let kept = 0
      for (let turn = 0; turn < draws; turn++) {
        const seen = draw(truth, Math.min(chosen.rows, 20000), random)
        kept += holds(guarantee(seen.counts, seen.positives, chosen.confidence), truth) ? 1 : 0
      }
      root.dataset.kept = String(kept)
      coverage.textContent =
        `In ${kept} of ${draws} draws, every interval contained its true rate; ` +
        `the guarantee is at least ${Math.round(100 * chosen.confidence)}%.`
    }

    SLIDERS.forEach(({ name, label, from, to, step, start: value }) => {
      const row = element("label", { for: `play-${name}` }, label)
      const input = element("input", { type: "range", id: `play-${name}`, min: from, max: to, step, value })
      input.addEventListener("input", show)
      form.append(row, input, element("output", { id: `play-${name}-shown`, for: `play-${name}` }))
    })
    const again = element("button", { type: "button", class: "md-button" }, "Draw new rows")
    again.addEventListener("click", () => {
      seed += 1
      show()
    })
    const many = element("button", { type: "button", class: "md-button" }, "Draw 200 times")
    many.addEventListener("click", repeat)
    const buttons = element("p", {})
    buttons.append(again, " ", many)
    root.append(form, sentence, svg, buttons, coverage)
    show()
  }

  globalThis.calibrantPlay = { limits, guarantee }
  const root = document.getElementById("play")
  if (root) start(root)
})()
