/** Saves a value as a file of the reader. */
export function saveJson(name: string, value: unknown): void {
  const blob = new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' });
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser may begin to read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
