// The data, and figures over time from it.
const D = JSON.parse(document.getElementById("data").textContent);
const BUCKETS = Math.max(1, Math.ceil((D.span_ns + 1) / D.bucket_ns));

// The cells of a curve as a pyramid: level 0 has its own buckets, each next one joins two.
function decode(curve) {
  const bytes = atob(curve.cells), length = Math.ceil(BUCKETS / 2 ** curve.shift);
  const base = { min: new Float64Array(length), max: new Float64Array(length), last: new Float64Array(length) };
  let at = 0, next = 0, before = 0;
  const number = () => {
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  const fill = (to) => {
    for (; next < to; next++) base.min[next] = base.max[next] = base.last[next] = before;
  };
  while (at < bytes.length) {
    fill(next + number());
    const change = number(), last = before + (change % 2 ? -(change + 1) / 2 : change / 2);
    base.min[next] = Math.min(before, last) - number();
    base.max[next] = Math.max(before, last) + number();
    base.last[next++] = before = last;
  }
  fill(length);
  const levels = [base];
  while (levels[levels.length - 1].min.length > 64) levels.push(halve(levels[levels.length - 1]));
  return { levels, ns: D.bucket_ns * 2 ** curve.shift };
}

function halve(level) {
  const length = Math.ceil(level.min.length / 2);
  const half = { min: new Float64Array(length), max: new Float64Array(length), last: new Float64Array(length) };
  for (let i = 0; i < length; i++) {
    const j = Math.min(2 * i + 1, level.min.length - 1);
    half.min[i] = Math.min(level.min[2 * i], level.min[j]);
    half.max[i] = Math.max(level.max[2 * i], level.max[j]);
    half.last[i] = level.last[j];
  }
  return half;
}

// The least, the most and the last between two times, from the coarsest level that is fine enough.
function between(series, from, to) {
  let level = 0;
  while (level + 1 < series.levels.length && series.ns * 2 ** (level + 1) <= (to - from) / 2) level++;
  const { min, max, last } = series.levels[level], width = series.ns * 2 ** level;
  const first = Math.max(0, Math.min(min.length - 1, Math.floor(from / width)));
  const end = Math.max(first, Math.min(min.length - 1, Math.ceil(to / width) - 1));
  const found = { min: Infinity, max: -Infinity, last: last[end] };
  for (let i = first; i <= end; i++) {
    if (min[i] < found.min) found.min = min[i];
    if (max[i] > found.max) found.max = max[i];
  }
  return found;
}

// The curves of one device at a time are kept decoded.
const decoded = { device: -1, curves: new Map() };
function seriesOf(device, key, curve) {
  if (decoded.device !== device) { decoded.device = device; decoded.curves.clear(); }
  if (!decoded.curves.has(key)) decoded.curves.set(key, decode(curve));
  return decoded.curves.get(key);
}

const isWithin = (spans, from, to) => spans.some(([a, b]) => a < to && b >= from);
const exactBetween = (device, from, to) => !isWithin(device.gaps, from, to) && !isWithin(device.doubts, from, to);
