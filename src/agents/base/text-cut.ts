/** Returns the first `length` UTF-16 units of a text, or one less if the cut would split a character. */
export function headOf(text: string, length: number): string {
  return text.slice(0, splits(text, length) ? length - 1 : length);
}

/** Returns the last `length` UTF-16 units of a text, or one less if the cut would split a character. */
export function tailOf(text: string, length: number): string {
  const at = Math.max(0, text.length - length);
  return text.slice(splits(text, at) ? at + 1 : at);
}

/** Whether a cut before `at` splits a surrogate pair. */
function splits(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd8_00 && before <= 0xdb_ff && after >= 0xdc_00 && after <= 0xdf_ff;
}
