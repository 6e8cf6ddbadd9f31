// What devices held at a moment: a map by address, and by name.
const now = { snapshot: Math.max(0, D.snapshots.length - 1), by: "class", cells: [] };
const KINDS = { peak: "peak", failure: "failure", death: "end of a process", look: "look", end: "end" };
const holdingOf = () => D.snapshots[now.snapshot]?.devices.find((holding) => holding.device === view.device);
const MAP_ROWS = 13;

function mapExtent(holding) {
  const [start, end] = device().extents[view.memory], blocks = holding.blocks[view.memory];
  const last = blocks.reduce((most, block) => Math.max(most, block[0] + block[1]), 0);
  const first = start ?? Math.min(...blocks.map((block) => block[0]), last);
  return { first: Math.min(first, ...blocks.map((block) => block[0])), last: Math.max(end ?? 0, last), known: end !== null };
}
function blockColor(block, names) {
  if (now.by === "process") return placeColor(block[4]);
  if (now.by === "name") { if (!names.has(block[3])) names.set(block[3], names.size); return placeColor(names.get(block[3]) % 9); }
  return classColor(D.classes[block[2]]);
}

function drawMap() {
  const holding = holdingOf(), { context, width, height } = prepare($("map-canvas"));
  now.cells = [];
  if (!holding) return;
  const blocks = holding.blocks[view.memory], { first, last, known } = mapExtent(holding), names = new Map();
  const row = height / MAP_ROWS, span = Math.max(1, (last - first) / MAP_ROWS);
  context.fillStyle = color("--free");
  for (let i = 0; i < MAP_ROWS; i++) context.fillRect(0, i * row, width, row - 4);
  let end = first, largest = 0, free = 0, overlaps = 0;
  blocks.forEach((block, place) => {
    if (block[0] < end && place) overlaps++;
    if (block[0] > end) { largest = Math.max(largest, block[0] - end); free += block[0] - end; }
    end = Math.max(end, block[0] + block[1]);
    context.fillStyle = color(blockColor(block, names));
    context.globalAlpha = place % 2 ? 0.72 : 0.95;
    for (let from = block[0]; from < block[0] + block[1];) {
      const line = Math.min(MAP_ROWS - 1, Math.floor((from - first) / span)), to = Math.min(block[0] + block[1], first + (line + 1) * span);
      const x = ((from - first - line * span) / span) * width, wide = Math.max(1, ((to - from) / span) * width);
      context.fillRect(x, line * row, wide, row - 4);
      now.cells.push({ x, y: line * row, wide, tall: row - 4, block });
      if (to <= from) break;
      from = to;
    }
  });
  context.globalAlpha = 1;
  if (last > end) { largest = Math.max(largest, last - end); free += last - end; }
  noteMap(holding, { first, last, known, free, largest, overlaps });
}

function noteMap(holding, { first, last, known, free, largest, overlaps }) {
  const blocks = holding.blocks[view.memory], what = view.memory ? "the L1 of a core" : "a bank of DRAM", parts = [];
  const figure = holding.figures[view.memory];
  parts.push(`Device ${device().label}: ${D.figures[view.memory][1]} used ${holding.is_exact ? "" : "≥ "}${bytes(figure)}${holding.is_exact ? "" : " (not exact)"}.`);
  if (blocks.length) {
    parts.push(`The strip is ${what}, 0x${first.toString(16)} to 0x${last.toString(16)}${known ? "" : ", up to the last allocation"}.`);
    if (!holding.hidden[view.memory]) parts.push(`Free between and after allocations ${bytes(free)}, largest gap ${bytes(largest)}.`);
    if (overlaps) parts.push(`${overlaps} allocations overlap others.`);
  } else parts.push("No allocation with a known address.");
  if (holding.hidden[view.memory]) parts.push(`${count(holding.hidden[view.memory])} smaller pieces are not drawn.`);
  if (holding.unplaced) parts.push(`${count(holding.unplaced)} allocations have no known address.`);
  $("map-note").textContent = parts.join(" ");
  $("map-canvas").setAttribute("aria-label", `Map. ${parts.join(" ")} The table below has what is in it.`);
}

function drawComposition() {
  const holding = holdingOf(), where = $("composition");
  if (!holding) { where.replaceChildren(); return; }
  const isHere = (group) => (view.memory ? [2, 3, 4] : [0, 1]).includes(group[0]);
  const total = holding.figures[view.memory], rows = holding.groups.filter(isHere);
  const [smaller, size] = holding.others[view.memory];
  if (smaller) rows.push([null, null, null, size, null, null, `${count(smaller)} smaller ${smaller === 1 ? "group" : "groups"}`]);
  if (holding.unlisted[view.memory]) rows.push([null, null, null, holding.unlisted[view.memory], null, null, "in no list (degraded, or not exact)"]);
  const title = (group) => group[6] || (D.classes[group[0]] === "cb" ? `CBs of ${nameOf(group[1])}` : nameOf(group[1]));
  const columns = [
    { title: "Name", text: title },
    { title: "Class", text: (group) => (group[0] === null ? DASH : D.classes[group[0]]) },
    { title: "Process", text: (group) => (group[2] === null ? DASH : processOf(group[2])) },
    { title: "Occupied", num: true, text: (group) => bytes(group[3]), value: (group) => group[3], bar: (group) => group[3] / (total || 1) },
    { title: "Share", num: true, text: (group) => share(group[3], total), value: (group) => group[3] },
    { title: "Requested", num: true, text: (group) => bytes(group[4]), value: (group) => group[4] ?? 0 },
    { title: "Count", num: true, text: (group) => (group[5] === null ? DASH : count(group[5])), value: (group) => group[5] ?? 0 },
  ];
  table(where, { caption: `What ${D.figures[view.memory][1]} was made of`, columns, rows, sort: 3, empty: "Nothing was held there at that time." });
}

function momentText(snapshot) { return `${time(snapshot.ns)} · ${snapshot.label}`; }
function drawMoment() {
  $("moment").value = String(now.snapshot);
  if (!D.devices.length) return;
  drawMap();
  drawComposition();
}
// The look at a peak of a device, if there is one.
const peakLook = (place, memory) => D.snapshots.findIndex((snapshot) => snapshot.of && snapshot.of[0] === place && snapshot.of[1] === memory);
function openLook(place) {
  now.snapshot = place;
  drawMoment();
}
function openNearest(ns) {
  let best = now.snapshot;
  D.snapshots.forEach((snapshot, place) => { if (Math.abs(snapshot.ns - ns) < Math.abs(D.snapshots[best].ns - ns)) best = place; });
  openLook(best);
}
function listenMap(canvas) {
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hit = now.cells.findLast((cell) => x >= cell.x && x <= cell.x + cell.wide && y >= cell.y && y <= cell.y + cell.tall);
    $("map-readout").textContent = hit ? `0x${hit.block[0].toString(16)}: ${bytes(hit.block[1])}, ${D.classes[hit.block[2]]}, ${nameOf(hit.block[3])}, ${processOf(hit.block[4])}${hit.block[5] > 1 ? `, ${hit.block[5]} allocations` : ""}` : "";
  });
}
