// The time line.
const view = { device: 0, memory: 0, by: "class", from: 0, to: D.span_ns || 1, cursor: null, drag: null };
const LEFT = 78, BOTTOM = 22, TOP = 8;
const PARTS = [[2, 3], [4, 5, 6]];
const device = () => D.devices[view.device];

// What is stacked: each part with its series, its name and its colour.
function parts() {
  const here = device();
  if (view.by === "class") return PARTS[view.memory].map((figure) => ({
    name: D.figures[figure][1], color: classColor(D.figures[figure][0]), series: seriesOf(view.device, `f${figure}`, here.curves[figure]) }));
  return here.usages.map((usage, place) => ({ usage, place })).sort((a, b) => b.usage.peaks[view.memory][0] - a.usage.peaks[view.memory][0])
    .map(({ usage, place }, rank) => ({ name: processOf(usage.process), color: placeColor(rank), series: seriesOf(view.device, `u${place}.${view.memory}`, usage.curves[view.memory]) }));
}
const used = () => seriesOf(view.device, `f${view.memory}`, device().curves[view.memory]);

function prepare(canvas) {
  const scale = window.devicePixelRatio || 1, { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return { context, width, height };
}
const xOf = (ns, width) => LEFT + ((ns - view.from) / (view.to - view.from)) * (width - LEFT);
const nsOf = (x, width) => view.from + (Math.max(0, x - LEFT) / Math.max(1, width - LEFT)) * (view.to - view.from);

// The scale: the capacity, or a half, a quarter and so on of it if that is enough.
function top(most) {
  const capacity = device().totals[view.memory];
  let scale = capacity || 2 ** Math.ceil(Math.log2(Math.max(most, 1024)));
  while (scale / 2 >= most * 1.04 && scale > 1024) scale /= 2;
  while (scale < most) scale *= 2;
  return scale;
}

function hatch(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = color("--hatch");
  context.globalAlpha = 0.55;
  for (let start = x - height; start < x + width; start += 7) { context.moveTo(start, y + height); context.lineTo(start + height, y); }
  context.stroke();
  context.restore();
}

function drawChart() {
  if (!D.devices.length) return;
  const { context, width, height } = prepare($("chart")), plot = height - BOTTOM - TOP;
  const columns = Math.max(1, Math.floor(width - LEFT)), step = (view.to - view.from) / columns;
  const total = used(), list = parts(), most = between(total, view.from, view.to).max;
  const scale = top(most), y = (value) => TOP + plot * (1 - value / scale);
  context.font = "12px system-ui, sans-serif";
  grid(context, width, height, scale, y);
  for (let column = 0; column < columns; column++) {
    const from = view.from + column * step, to = from + step, x = LEFT + column, all = between(total, from, to);
    context.fillStyle = color("--dim");
    context.globalAlpha = 0.3;
    context.fillRect(x, y(all.max), 1.05, y(Math.min(all.last, all.max)) - y(all.max));
    let below = 0;
    for (const part of list) {
      const value = between(part.series, from, to).last, solid = Math.min(below + value, Math.max(below, all.min));
      context.fillStyle = part.css || (part.css = color(part.color));
      context.globalAlpha = 0.88;
      context.fillRect(x, y(solid), 1.05, y(below) - y(solid));
      context.globalAlpha = 0.42;
      context.fillRect(x, y(below + value), 1.05, y(solid) - y(below + value));
      below += value;
    }
  }
  context.globalAlpha = 1;
  for (const [from, to] of [...device().gaps, ...device().doubts]) {
    const [a, b] = [Math.max(LEFT, xOf(from, width)), Math.min(width, xOf(to, width))];
    if (b >= LEFT && a <= width) hatch(context, a, TOP, Math.max(2, b - a), plot);
  }
  lines(context, width, y, scale);
  selection(context, width, plot);
  describe(most);
}

function grid(context, width, height, scale, y) {
  context.fillStyle = color("--dim");
  context.strokeStyle = color("--grid");
  context.textAlign = "right";
  for (let i = 0; i <= 4; i++) {
    const value = (scale * i) / 4;
    context.beginPath(); context.moveTo(LEFT, y(value)); context.lineTo(width, y(value)); context.stroke();
    context.fillText(bytes(value), LEFT - 8, Math.max(11, y(value) + 4));
  }
  const ticks = Math.max(2, Math.floor((width - LEFT) / 150));
  for (let i = 0; i <= ticks; i++) {
    const ns = view.from + ((view.to - view.from) * i) / ticks;
    context.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
    context.fillText(time(ns), xOf(ns, width), height - 6);
  }
}

function lines(context, width, y, scale) {
  const capacity = device().totals[view.memory], peak = device().peaks[view.memory];
  const line = (value, name, style) => {
    if (value === null || value > scale) return;
    context.strokeStyle = context.fillStyle = color(style);
    context.setLineDash([5, 4]);
    context.beginPath(); context.moveTo(LEFT, y(value)); context.lineTo(width, y(value)); context.stroke();
    context.setLineDash([]);
    context.textAlign = "right";
    context.fillText(`${name} ${name === "peak" ? peakText(peak) : bytes(value)}`, width - 6, Math.max(20, y(value) - 5));
  };
  line(capacity, "capacity", "--bad");
  if (peak[0] > 0) line(peak[0], "peak", "--accent");
}

function selection(context, width, plot) {
  const bar = (ns, style, alpha) => {
    const x = xOf(ns, width);
    if (x < LEFT || x > width) return;
    context.globalAlpha = alpha;
    context.strokeStyle = color(style);
    context.beginPath(); context.moveTo(x, TOP); context.lineTo(x, TOP + plot); context.stroke();
    context.globalAlpha = 1;
  };
  for (const failure of D.failures) if (failure.device === view.device) bar(failure.ns, "--bad", 0.8);
  if (view.cursor !== null) bar(view.cursor, "--fg", 1);
  if (view.drag) {
    context.fillStyle = color("--accent");
    context.globalAlpha = 0.2;
    context.fillRect(Math.min(view.drag.x, view.drag.to), TOP, Math.abs(view.drag.to - view.drag.x), plot);
    context.globalAlpha = 1;
  }
}

function describe(most) {
  const word = D.figures[view.memory][1];
  $("chart").setAttribute("aria-label", `${word} of device ${device().label} over time, by ${view.by}; at most ${bytes(most)} from ${time(view.from)} to ${time(view.to)}`);
  $("window").textContent = `${time(view.from)} to ${time(view.to)} · ${duration(view.to - view.from)}`;
}

// What the cursor is on: exact if nothing changed in its bucket and nothing is missing there.
function values(from, to) {
  const total = between(used(), from, to), exact = exactBetween(device(), from, to);
  const range = (v) => (v.min === v.max ? bytes(v.last) : `${bytes(v.min)} to ${bytes(v.max)}, then ${bytes(v.last)}`);
  return { total, exact, range, list: parts().map((part) => ({ name: part.name, value: between(part.series, from, to) })) };
}
function bucketOf(ns) {
  const width = used().ns, from = Math.floor(ns / width) * width;
  return [from, from + width];
}
function drawReadout() {
  if (view.cursor === null || !D.devices.length) { $("readout").textContent = "Move the cursor over the chart for the values of a time."; return; }
  const [from, to] = bucketOf(view.cursor), at = values(from, to);
  const parts = at.list.filter((part) => part.value.max > 0).slice(0, 8).map((part) => `${part.name} ${at.range(part.value)}`);
  $("readout").textContent = `${time(view.cursor)} (${wall(view.cursor)}): ${D.figures[view.memory][1]} ${at.exact ? "" : "≥ "}${at.range(at.total)}`
    + ` within ${duration(to - from)}${at.exact ? "" : ", not exact"}${parts.length ? " · " + parts.join(" · ") : ""}`;
}

function drawLegend() {
  $("legend").replaceChildren(...parts().slice(0, 12).map((part) => {
    const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(${part.color})`;
    return el("li", {}, swatch, part.name);
  }));
}

function drawTable() {
  if (!$("as-table").open) return;
  const step = (view.to - view.from) / 50, rows = [];
  for (let i = 0; i < 50; i++) rows.push({ from: view.from + i * step, ...values(view.from + i * step, view.from + (i + 1) * step) });
  const columns = [
    { title: "From", text: (row) => time(row.from), value: (row) => row.from },
    { title: "Least", num: true, text: (row) => (row.exact ? "" : "≥ ") + bytes(row.total.min), value: (row) => row.total.min },
    { title: "Most", num: true, text: (row) => (row.exact ? "" : "≥ ") + bytes(row.total.max), value: (row) => row.total.max },
    { title: "Last", num: true, text: (row) => bytes(row.total.last), value: (row) => row.total.last },
    ...parts().slice(0, 8).map((part, place) => ({ title: part.name, num: true, text: (row) => bytes(row.list[place].value.last), value: (row) => row.list[place].value.last })),
    { title: "Exact", text: (row) => (row.exact ? "yes" : "no") },
  ];
  table($("chart-table"), { caption: `${D.figures[view.memory][1]} over time`, columns, rows, down: false, empty: "" });
}

function drawOverview() {
  const { context, width, height } = prepare($("overview")), total = used(), most = device().peaks[view.memory][0] || 1;
  const step = D.span_ns / Math.max(1, width - LEFT);
  context.fillStyle = color("--dim");
  context.globalAlpha = 0.5;
  for (let x = LEFT; x < width; x++) {
    const tall = (height * between(total, (x - LEFT) * step, (x - LEFT + 1) * step).max) / most;
    context.fillRect(x, height - tall, 1.05, tall);
  }
  const place = (ns) => LEFT + (ns / D.span_ns) * (width - LEFT);
  context.globalAlpha = 0.22;
  context.fillStyle = color("--accent");
  context.fillRect(place(view.from), 0, Math.max(3, place(view.to) - place(view.from)), height);
}

// Marks, the worst ones first. Where two have no room beside each other, the first one stands for both.
const MARK = 16;
function allMarks() {
  const marks = [];
  for (const failure of D.failures) if (failure.device === view.device) marks.push({ kind: "failure", sign: "▲", ns: failure.ns, memory: ["dram", "trace"].includes(failure.class) ? 0 : 1, look: failure.snapshot ?? -1, text: `${failure.class} allocation of ${bytes(failure.size)} failed, ${processOf(failure.process)}` });
  D.processes.forEach((process, place) => { if (process.until !== null) marks.push({ kind: process.how === "died" ? "death" : "marker", sign: "✕", ns: process.until, text: `${processOf(place)} ended (${process.how})` }); });
  device().peaks.slice(0, 2).forEach((peak, memory) => { if (peak[0] > 0) marks.push({ kind: "peak", sign: "◆", ns: peak[2], memory, look: peakLook(view.device, memory), text: `peak of ${D.figures[memory][1]}: ${peakText(peak)}` }); });
  for (const [ns, process, name, phase] of D.markers) marks.push({ kind: "marker", sign: ["⟨", "⟩", "│"][phase] || "│", ns, text: `${nameOf(name)} ${["begins", "ends", ""][phase] || ""}, ${processOf(process)}` });
  return marks;
}
function drawMarks() {
  const box = $("marks"), width = box.getBoundingClientRect().width;
  const columns = new Map();
  for (const mark of allMarks()) {
    if (mark.ns < view.from || mark.ns > view.to) continue;
    const x = Math.min(width - MARK / 2, xOf(mark.ns, width)), column = Math.floor(x / MARK);
    const near = [column, column - 1, column + 1].map((one) => columns.get(one)).find((one) => one && Math.abs(one.x - x) < MARK);
    if (near) near.behind++; else columns.set(column, { mark, x, behind: 0 });
  }
  const inOrder = [...columns.values()].sort((a, b) => a.mark.ns - b.mark.ns);
  box.replaceChildren(...inOrder.map(({ mark, x, behind }) => {
    const text = `${time(mark.ns)}: ${mark.text}${behind ? ` (and ${count(behind)} more here: zoom in)` : ""}`;
    const button = el("button", { type: "button", class: mark.kind, "aria-label": text, title: text, on: { click: () => goTo(mark.ns, view.device, mark.memory, mark.look) } }, mark.sign);
    button.style.left = `${x}px`;
    return button;
  }));
  const behind = inOrder.reduce((sum, one) => sum + one.behind, 0), unlisted = D.failure_count - D.failures.length + D.marker_count - D.markers.length;
  const notes = [behind ? `${count(behind)} more ${behind === 1 ? "mark is" : "marks are"} behind others: zoom in to see them.` : "", unlisted ? `${count(unlisted)} more failures and markers of this record have no mark.` : ""];
  $("marks-note").textContent = notes.filter(Boolean).join(" ");
  $("marks-note").hidden = !behind && !unlisted;
}

let queued = false;
function draw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => {
    queued = false;
    if (!D.devices.length) return;
    drawChart(); drawOverview(); drawMarks(); drawLegend(); drawReadout(); drawTable();
  });
}

function show(from, to) {
  const least = Math.min(Math.max(1000, D.bucket_ns / 4), D.span_ns), width = Math.min(D.span_ns, Math.max(least, to - from));
  const start = Math.max(0, Math.min(D.span_ns - width, from));
  view.from = start;
  view.to = start + width;
  draw();
}
function zoom(factor, around = view.cursor ?? (view.from + view.to) / 2) {
  const centre = Math.max(view.from, Math.min(view.to, around)), width = (view.to - view.from) * factor;
  show(centre - ((centre - view.from) / (view.to - view.from)) * width, centre + ((view.to - centre) / (view.to - view.from)) * width);
}
const pan = (part) => show(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);
function moveCursor(ns) {
  view.cursor = Math.max(0, Math.min(D.span_ns, ns));
  if (view.cursor < view.from || view.cursor > view.to) pan(view.cursor < view.from ? -0.5 : 0.5);
  draw();
}

function listen(canvas) {
  const place = (event) => event.clientX - canvas.getBoundingClientRect().left, width = () => canvas.getBoundingClientRect().width;
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, nsOf(place(event), width())); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); view.drag = { x: place(event), to: place(event) }; });
  canvas.addEventListener("pointermove", (event) => { if (view.drag) view.drag.to = place(event); view.cursor = nsOf(place(event), width()); draw(); });
  canvas.addEventListener("pointerup", (event) => {
    const drag = view.drag;
    view.drag = null;
    if (drag && Math.abs(drag.to - drag.x) > 6) show(nsOf(Math.min(drag.x, drag.to), width()), nsOf(Math.max(drag.x, drag.to), width()));
    else openNearest(nsOf(place(event), width()));
  });
  canvas.addEventListener("keydown", (event) => {
    const step = (view.to - view.from) / 100, from = view.cursor ?? view.from;
    const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => show(0, D.span_ns), Home: () => moveCursor(0), End: () => moveCursor(D.span_ns),
      ArrowLeft: () => (event.shiftKey ? pan(-0.25) : moveCursor(from - step)), ArrowRight: () => (event.shiftKey ? pan(0.25) : moveCursor(from + step)), Enter: () => openNearest(from) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
}
