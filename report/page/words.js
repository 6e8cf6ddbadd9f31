// How figures are written: as everywhere in tt-smi.
const DASH = "-";
function bytes(value) {
  if (value === null || value === undefined) return DASH;
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, scaled = value / 1024;
  while (scaled >= 1023.95 && unit + 1 < units.length) { scaled /= 1024; unit++; }
  // A tie goes to the even digit, as in tt-smi: 3.25 is 3.2. Only a quarter is one that toFixed rounds up.
  return `${(scaled % 1 === 0.25 ? scaled - 0.05 : scaled).toFixed(1)} ${units[unit]}`;
}
const count = (value) => value.toLocaleString("en-US").replaceAll(",", " ");
function time(ns) {
  if (ns === null || ns === undefined) return DASH;
  const digits = D.span_ns < 1e6 ? 9 : D.span_ns < 1e9 ? 6 : 3, seconds = ns / 1e9;
  if (seconds < 60) return `+${seconds.toFixed(digits)} s`;
  const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
  const rest = (seconds % 60).toFixed(digits).padStart(digits + 3, "0");
  return hours ? `+${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `+${minutes}:${rest}`;
}
function duration(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
  if (ns < 60e9) return `${(ns / 1e9).toFixed(2)} s`;
  const minutes = Math.floor(ns / 60e9);
  return minutes < 60 ? `${minutes} min ${Math.round((ns % 60e9) / 1e9)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
const wall = (ns) => new Date(D.start_ms + ns / 1e6).toISOString().replace("T", " ").replace("Z", " UTC");
const share = (part, of) => (!of ? DASH : part > 0 && part < of / 200 ? "< 1 %" : `${Math.round((100 * part) / of)} %`);
const nameOf = (number) => D.texts[number] || "no name";
const processOf = (place) => (D.processes[place] ? `${D.processes[place].name || "?"} (${D.processes[place].pid})` : DASH);
const deviceOf = (place) => (D.devices[place] ? D.devices[place].label : DASH);
// A peak: exact if what is certain is what is possible.
function peakText([low, high]) {
  if (high === null) return `≥ ${bytes(low)}`;
  return high === low ? bytes(low) : `${bytes(low)} to ${bytes(high)}`;
}
const isPeakExact = ([low, high]) => high !== null && high === low;

const $ = (id) => document.getElementById(id);
function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") node.className = value;
    else if (key === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const CLASS_COLORS = { dram: "--c-dram", trace: "--c-trace", l1: "--c-l1", l1_small: "--c-l1_small", cb: "--c-cb", cb_resident: "--c-cb" };
const classColor = (name) => CLASS_COLORS[name] || "--c-other";
const placeColor = (place) => (place < 8 ? `--p${place}` : "--p8");
