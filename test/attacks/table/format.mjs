import { MIB } from './values.mjs';

export function size(bytes) {
  if (bytes >= MIB) return `${(bytes / MIB).toFixed(1)} MB`;
  return bytes >= 1024 ? `${Math.round(bytes / 1024)} KB` : `${bytes} B`;
}

export function seconds(ms) {
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms)} ms`;
}
