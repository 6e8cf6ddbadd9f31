// The page as a whole.
// Shows a time, and the memory at this look or the nearest one.
function goTo(ns, place, memory, look = -1) {
  if (place !== undefined && place !== null) view.device = place;
  if (memory !== undefined && memory !== null) view.memory = memory;
  $("device").value = String(view.device);
  $("memory").value = String(view.memory);
  view.cursor = ns;
  if (ns < view.from || ns > view.to) show(ns - (view.to - view.from) / 2, ns + (view.to - view.from) / 2);
  draw();
  if (look >= 0) openLook(look); else openNearest(ns);
}
const jump = (ns, place, memory, look) => () => { goTo(ns, place, memory, look); $("timeline").scrollIntoView(); };

function facts() {
  const list = [["Host", D.host || DASH], ["Recorded", `${wall(0)} to ${wall(D.span_ns)}`], ["Span", duration(D.span_ns)], ["Command", D.command || DASH],
    ["Namespace", D.namespace || DASH], ["Devices", D.devices.map((one) => one.label).join(", ") || DASH], ["Processes", count(D.processes.length)], ["Events", count(D.events)],
    ["Missing events", D.lost ? `${count(D.lost)} in ${count(D.gap_count)} gaps` : "none"], ["Record", `${D.file} · ${bytes(D.record_bytes)}`]];
  $("facts").replaceChildren(...list.map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text))));
}

function findings() {
  const words = { bad: "Error", warn: "Warning", note: "Note" };
  const item = (finding) => {
    const act = finding.ns !== null ? jump(finding.ns, finding.device) : () => $(finding.section).scrollIntoView();
    return el("li", { class: finding.level }, el("b", {}, words[finding.level]), finding.text, el("button", { type: "button", class: "link", on: { click: act } }, "show"));
  };
  const list = D.findings.map(item);
  if (!list.length) list.push(el("li", { class: "ok" }, el("b", {}, "Fine"), "No failed allocation, no death, nothing over capacity, no leak suspected, nothing missing."));
  $("findings").replaceChildren(...list);
}

const deviceColumn = { title: "Device", text: (row) => deviceOf(row.device ?? row[0]) };
function peaksTable() {
  const rows = D.devices.flatMap((one, place) => one.peaks.map((peak, figure) => ({ device: place, figure, peak, total: one.totals[figure] ?? null })).filter((row) => row.peak[0] > 0));
  const names = (row) => {
    if (row.figure > 1) return DASH;
    const holding = D.snapshots[peakLook(row.device, row.figure)]?.devices.find((one) => one.device === row.device);
    const isHere = (group) => (row.figure ? [2, 3, 4] : [0, 1]).includes(group[0]);
    const whose = (group) => (D.devices[row.device].usages.length > 1 ? ` of ${processOf(group[2])}` : "");
    return holding ? holding.groups.filter(isHere).slice(0, 4).map((group) => `${D.classes[group[0]] === "cb" ? "CBs of " : ""}${nameOf(group[1])}${whose(group)} ${bytes(group[3])}`).join(", ") : DASH;
  };
  table($("peaks-table"), { caption: "Peaks", rows, sort: 0, down: false, empty: "Nothing was allocated.", columns: [
    deviceColumn,
    { title: "What", text: (row) => D.figures[row.figure][1], value: (row) => row.figure },
    { title: "Peak", num: true, text: (row) => peakText(row.peak), value: (row) => row.peak[0] },
    { title: "Share", num: true, text: (row) => (row.figure < 2 ? share(row.peak[0], row.total) : DASH), value: (row) => (row.figure < 2 && row.total ? row.peak[0] / row.total : -1) },
    { title: "Capacity", num: true, text: (row) => (row.figure < 2 ? bytes(row.total) : DASH), value: (row) => row.total ?? -1 },
    { title: "Time", text: (row) => time(row.peak[2]), value: (row) => row.peak[2], act: (row) => jump(row.peak[2], row.device, row.figure < 2 ? row.figure : row.figure < 4 ? 0 : 1, peakLook(row.device, row.figure)) },
    { title: "Exact", text: (row) => (isPeakExact(row.peak) ? "yes" : "no") },
    { title: "Largest names", text: names }] });
}

function leftTable() {
  const fates = ["held at the end of the record", "left at the end of its process", "dropped when its device was closed"];
  table($("left-table"), { caption: "Never freed, by name", rows: D.left, sort: 4, empty: "Everything was freed.", columns: [
    deviceColumn,
    { title: "Process", text: (row) => processOf(row[1]) },
    { title: "Class", text: (row) => D.classes[row[2]] },
    { title: "Name", text: (row) => nameOf(row[3]) },
    { title: "Occupied", num: true, text: (row) => bytes(row[4]), value: (row) => row[4] },
    { title: "Requested", num: true, text: (row) => bytes(row[5]), value: (row) => row[5] },
    { title: "Count", num: true, text: (row) => count(row[6]), value: (row) => row[6] },
    { title: "Of them new", num: true, text: (row) => count(row[7]), value: (row) => row[7] },
    { title: "Oldest", text: (row) => (row[8] ? time(row[8]) : "before"), value: (row) => row[8] },
    { title: "What became of it", text: (row) => fates[row[9]] + (row[10] >= 5 ? "; rose in " + row[10] + " of 11 intervals, never fell" : "") }] });
  noteRest("left-table", D.left_count - D.left.length, "smaller ones are not listed.");
  const doubted = D.processes.filter((one) => one.unknown.length || one.is_partial || one.differences || one.unlisted).length;
  if (doubted || !D.is_finished) $("left-table").append(el("p", { class: "note" }, `Not everything is known${doubted ? ` of ${count(doubted)} ${doubted === 1 ? "process" : "processes"}` : ""}: there may be more than is listed.`));
}

// What a list leaves out.
function noteRest(where, rest, what = "more are not listed.") {
  if (rest > 0) $(where).append(el("p", { class: "note" }, `${count(rest)} ${what}`));
}
function failuresTable() {
  const maybe = (value, row) => (value === null ? DASH : bytes(value) + (row.is_per_bank ? "/bank" : ""));
  table($("failures-table"), { caption: "Failed allocations", rows: D.failures, sort: 0, down: false, empty: "No allocation failed.", columns: [
    { title: "Time", text: (row) => time(row.ns), value: (row) => row.ns, act: (row) => jump(row.ns, row.device, ["dram", "trace"].includes(row.class) ? 0 : 1, row.snapshot ?? -1) },
    { title: "Device", text: (row) => row.on },
    { title: "Process", text: (row) => processOf(row.process) },
    { title: "Class", text: (row) => row.class },
    { title: "Name", text: (row) => nameOf(row.name) },
    { title: "Requested", num: true, text: (row) => bytes(row.size), value: (row) => row.size ?? -1 },
    { title: "Needed per bank", num: true, text: (row) => bytes(row.needed), value: (row) => row.needed ?? -1 },
    { title: "Free", num: true, text: (row) => maybe(row.free, row), value: (row) => row.free ?? -1 },
    { title: "Largest block", num: true, text: (row) => maybe(row.largest, row), value: (row) => row.largest ?? -1 },
    { title: "Why", text: (row) => row.why },
    { title: "DRAM used", num: true, text: (row) => (row.is_exact ? "" : "≥ ") + bytes(row.held[0]), value: (row) => row.held[0] },
    { title: "L1 used", num: true, text: (row) => (row.is_exact ? "" : "≥ ") + bytes(row.held[1]), value: (row) => row.held[1] }] });
  noteRest("failures-table", D.failure_count - D.failures.length);
}

function programsTable() {
  table($("programs-table"), { caption: "Programs", rows: D.programs, sort: 3, empty: "No program was dispatched.", columns: [
    deviceColumn,
    { title: "Process", text: (row) => processOf(row[1]) },
    { title: "Program", text: (row) => nameOf(row[2]) },
    { title: "Dispatches", num: true, text: (row) => count(row[3]), value: (row) => row[3] },
    { title: "Cached", num: true, text: (row) => share(row[4], row[3]), value: (row) => row[4] / (row[3] || 1) },
    { title: "CBs", num: true, text: (row) => bytes(row[5]), value: (row) => row[5] },
    { title: "Kernels", num: true, text: (row) => bytes(row[6]), value: (row) => row[6] },
    { title: "First", text: (row) => time(row[7]), value: (row) => row[7], act: (row) => jump(row[7], row[0], 1) },
    { title: "Last", text: (row) => time(row[8]), value: (row) => row[8], act: (row) => jump(row[8], row[0], 1) }] });
  noteRest("programs-table", D.program_count - D.programs.length);
}

function processesTable() {
  const rows = D.processes.map((process, place) => ({ process, place, usages: D.devices.flatMap((one, device) => one.usages.filter((usage) => usage.process === place).map((usage) => ({ device, usage }))) }));
  const most = (row, memory) => row.usages.reduce((value, { usage }) => Math.max(value, usage.peaks[memory][0]), 0);
  const peak = (row, memory) => (row.process.unknown.length || row.process.is_partial || row.process.differences ? "≥ " : "") + bytes(most(row, memory));
  table($("processes-table"), { caption: "Processes", rows, sort: 5, empty: "No process reported.", columns: [
    { title: "Pid", num: true, text: (row) => String(row.process.pid), value: (row) => row.process.pid },
    { title: "Name", text: (row) => row.process.name || DASH },
    { title: "User", text: (row) => row.process.user || DASH },
    { title: "Command", dim: true, text: (row) => row.process.command || DASH },
    { title: "Devices", text: (row) => row.usages.map((one) => deviceOf(one.device)).join(", ") || DASH },
    { title: "DRAM peak/dev", num: true, text: (row) => peak(row, 0), value: (row) => most(row, 0) },
    { title: "L1 peak/dev", num: true, text: (row) => peak(row, 1), value: (row) => most(row, 1) },
    { title: "Since", text: (row) => time(row.process.since), value: (row) => row.process.since },
    { title: "Until", text: (row) => (row.process.until === null ? "end" : time(row.process.until)), value: (row) => row.process.until ?? Infinity },
    { title: "End", text: (row) => row.process.how },
    { title: "Events", num: true, text: (row) => count(row.process.events), value: (row) => row.process.events },
    { title: "Missing", num: true, text: (row) => count(row.process.lost), value: (row) => row.process.lost }] });
}

function markersTable() {
  const phases = ["begin", "end", "instant"];
  table($("markers-table"), { caption: "Markers", rows: D.markers, sort: 0, down: false, empty: "No process marked a step.", columns: [
    { title: "Time", text: (row) => time(row[0]), value: (row) => row[0], act: (row) => jump(row[0]) },
    { title: "Process", text: (row) => processOf(row[1]) },
    { title: "Name", text: (row) => nameOf(row[2]) },
    { title: "What", text: (row) => phases[row[3]] || DASH },
    { title: "Number", num: true, text: (row) => String(row[4]), value: (row) => row[4] }] });
  noteRest("markers-table", D.marker_count - D.markers.length);
}

function exactness() {
  const text = [`Figures are exact unless they say otherwise: “≥” is a lower bound, “to” a range, “${DASH}” is not known.`];
  if (D.begin_ns) text.push(`Peaks are those from ${time(D.begin_ns)} on, when all processes that were there had been read.`);
  if (D.devices.some((one) => one.chips.length > 1)) text.push("Devices in one line (0-3 x4) are the same in kind, capacity, processes, peaks, counts and what they held at the end; the curves are those of the first.");
  text.push(`Curves have the least, the most and the last of each ${duration(D.bucket_ns)} or longer.`);
  if (D.out_of_order) text.push(`${count(D.out_of_order)} events were merged too late.`);
  if (D.unlisted_groups) text.push(`${count(D.unlisted_groups)} entries had no room in the lists by name.`);
  $("exactness-text").textContent = text.join(" ");
  const rows = D.processes.flatMap((process, place) => process.gaps.map((gap) => ({ place, gap })));
  table($("gaps-table"), { caption: "Gaps", rows, sort: 3, empty: "No event is missing.", columns: [
    { title: "Process", text: (row) => processOf(row.place) },
    { title: "After", text: (row) => time(row.gap[0]), value: (row) => row.gap[0], act: (row) => jump(row.gap[0]) },
    { title: "Before", text: (row) => (row.gap[1] ? time(row.gap[1]) : DASH), value: (row) => row.gap[1] },
    { title: "Missing events", num: true, text: (row) => count(row.gap[2]), value: (row) => row.gap[2] }] });
  noteRest("gaps-table", D.gap_count - rows.length);
}

function theme() {
  const root = document.documentElement, prefers = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    root.classList.toggle("dark", dark);
    $("theme").textContent = dark ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    $("theme").setAttribute("aria-pressed", String(dark));
    draw(); drawMoment();
  };
  prefers.addEventListener("change", () => set(prefers.matches));
  $("theme").addEventListener("click", () => set(!root.classList.contains("dark")));
  set(prefers.matches);
}

function start() {
  $("title").textContent = D.title;
  for (const section of document.querySelectorAll("main section")) $("contents").append(el("li", {}, el("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
  D.devices.forEach((one, place) => $("device").append(el("option", { value: place }, [one.label, one.board || one.arch].filter(Boolean).join(" · "))));
  D.snapshots.forEach((snapshot, place) => $("moment").append(el("option", { value: place }, momentText(snapshot))));
  const busiest = D.devices.reduce((best, one, place) => (one.peaks[0][0] > D.devices[best].peaks[0][0] ? place : best), 0);
  view.device = busiest;
  if (D.devices.length && !D.devices[busiest].peaks[0][0]) view.memory = 1;
  const first = peakLook(view.device, view.memory);
  if (first >= 0) now.snapshot = first;
  $("device").value = String(view.device);
  $("memory").value = String(view.memory);
  const change = (id, set) => $(id).addEventListener("change", () => { set($(id).value); draw(); drawMoment(); });
  change("device", (value) => { view.device = Number(value); });
  change("memory", (value) => { view.memory = Number(value); });
  change("by", (value) => { view.by = value; });
  change("map-by", (value) => { now.by = value; });
  change("moment", (value) => { now.snapshot = Number(value); view.cursor = D.snapshots[now.snapshot].ns; });
  const press = (id, act) => $(id).addEventListener("click", act);
  press("zoom-in", () => zoom(0.5)); press("zoom-out", () => zoom(2)); press("pan-left", () => pan(-0.5)); press("pan-right", () => pan(0.5));
  press("reset", () => show(0, D.span_ns)); press("print", () => window.print());
  $("as-table").addEventListener("toggle", draw);
  listen($("chart")); listenMap($("map-canvas"));
  facts(); findings(); peaksTable(); leftTable(); failuresTable(); programsTable(); processesTable(); markersTable(); exactness();
  $("foot").textContent = `Made by tt-smi report from ${D.file}, recorded by tt-smi ${D.tool || DASH}. This page loads nothing and sends nothing.`;
  if (!D.devices.length) $("timeline").append(el("p", { class: "note" }, "No device is in this record."));
  theme();
  window.addEventListener("resize", () => { draw(); drawMoment(); });
}
start();
