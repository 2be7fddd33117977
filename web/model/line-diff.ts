/** Largest product of the two lengths for which lines are aligned. Beyond it, the whole middle counts as replaced. */
const mostPairs = 1_000_000;

/** Returns a unified diff of two texts, with three lines around each change. Empty if the texts are equal. */
export function lineDiff(before: string, after: string): string {
  if (before === after) return "";
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++;
  let end = 0;
  while (
    end < old.length - start &&
    end < fresh.length - start &&
    old[old.length - 1 - end] === fresh[fresh.length - 1 - end]
  )
    end++;
  const head = old.slice(Math.max(0, start - context), start).map((line) => ` ${line}`);
  const middle = aligned(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end));
  const tail = old.slice(old.length - end, old.length - end + context).map((line) => ` ${line}`);
  const from = start - head.length + 1;
  return [`@@ -${from} +${from} @@`, ...head, ...middle, ...tail].join("\n");
}

const context = 3;

/** An empty text has no line, so that a text which is added removes none. */
function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.split("\n");
}

/** The lines of both texts by a longest common subsequence: removed, added and common ones in order. */
function aligned(old: readonly string[], fresh: readonly string[]): readonly string[] {
  const removed = old.map((line) => `-${line}`);
  const added = fresh.map((line) => `+${line}`);
  if (old.length * fresh.length > mostPairs) return [...removed, ...added];
  const width = fresh.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      lines.push(` ${old[i++]}`);
      j++;
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))
      lines.push(removed[i++] ?? "");
    else lines.push(added[j++] ?? "");
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)];
}

/** The text before and after a part, if the whole contains it exactly once. */
export function partIn(
  whole: string,
  part: string | null,
): { readonly before: string; readonly after: string } | null {
  if (part === null || part === "") return null;
  const at = whole.indexOf(part);
  if (at < 0 || whole.includes(part, at + 1)) return null;
  return { before: whole.slice(0, at), after: whole.slice(at + part.length) };
}
