const UNITS = ['bytes', 'kB', 'MB', 'GB'];

/** A number of bytes for people, in units of 1024: `340 bytes`, `1.2 MB`. */
export function sizeOf(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}
