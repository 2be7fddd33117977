import type { FileHandle } from "node:fs/promises";
import type { CancelSignal } from "../../kernel/index.ts";

/** Lines of a file, as `readLines` returns them. */
export interface LinePage {
  /** Text of the lines, without the line break after the last one. */
  readonly text: string;
  /** Number of the last returned line, starting at 1. If no line is returned, the number of the last line that was seen. */
  readonly to: number;
  /** Whether the file ends after the returned lines. */
  readonly isEnd: boolean;
  /** Whether the last returned line continues in the file. */
  readonly isCut: boolean;
  /** Whether every byte was valid UTF-8. */
  readonly isExact: boolean;
  /** Whether the first line is further away than `maxSkipped` bytes. If so, no line is returned. */
  readonly isFar: boolean;
}

/** Which lines to read. */
export interface LineRange {
  /** Number of the first line, starting at 1. */
  readonly from: number;
  /** Maximum number of lines. */
  readonly lines: number;
  /** Maximum number of bytes of all lines together. */
  readonly maxBytes: number;
  /** Maximum number of bytes before the first line, because they are read to count lines. */
  readonly maxSkipped: number;
  readonly signal: CancelSignal;
}

const chunkBytes = 65_536;
/**
 * Size of the chunks in which bytes are read that are only counted. It is larger than for other bytes, because
 * counting costs little more than the call that reads them.
 */
const skippedChunkBytes = 1_048_576;
const lineEnd = 0x0a;

/** The place at which a line starts in a file, or how far the search for it has come. */
interface LineStart {
  readonly line: number;
  readonly position: number;
  /** Whether a line starts here. */
  readonly endsLine: boolean;
  readonly isEnd: boolean;
}

/**
 * Searches for the start of a line, over at most `maxSkipped` bytes. The search takes a nanosecond per byte, even
 * if all lines are short.
 */
async function findLine(
  file: FileHandle,
  { from, maxSkipped, signal }: Pick<LineRange, "from" | "maxSkipped" | "signal">,
): Promise<LineStart> {
  let line = 1;
  let position = 0;
  let endsLine = true;
  while (line < from && position < maxSkipped) {
    signal.throwIfAborted();
    const chunk = await readBytes(file, position, Math.min(skippedChunkBytes, maxSkipped - position));
    if (chunk.length === 0) return { line, position, endsLine, isEnd: true };
    const [passed, at] = passLines(chunk, from - line);
    line += passed;
    position += at;
    endsLine = chunk[at - 1] === lineEnd;
  }
  return { line, position, endsLine, isEnd: false };
}

/**
 * Skips at most `wanted` line ends. Returns how many were skipped, and the index after the last byte that was
 * examined.
 */
function passLines(chunk: Uint8Array, wanted: number): readonly [passed: number, at: number] {
  let [passed, at] = [0, 0];
  while (at < chunk.length && passed < wanted) if (chunk[at++] === lineEnd) passed++;
  return [passed, at];
}

/**
 * Reads lines of a file. It keeps at most `maxBytes` and one chunk of at most 1 MiB in memory, and reads at most
 * `maxSkipped` bytes before the first line, so that a very large, sparse or endless file does not block the
 * process.
 */
export async function readLines(file: FileHandle, range: LineRange): Promise<LinePage> {
  const { from, lines, maxBytes, signal } = range;
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let { line, position, endsLine, isEnd } = await findLine(file, range);
  const isFar = line < from && !isEnd;
  let isFull = isFar;
  while (!isFull && !isEnd) {
    signal.throwIfAborted();
    const chunk = await readBytes(file, position, chunkBytes);
    position += chunk.length;
    if (chunk.length === 0) {
      isEnd = true;
      break;
    }
    for (let at = 0; at < chunk.length && !isFull;) {
      const end = chunk.indexOf(lineEnd, at);
      const next = end === -1 ? chunk.length : end + 1;
      const room = maxBytes - keptBytes;
      const piece = chunk.subarray(at, Math.min(next, at + room));
      kept.push(piece);
      keptBytes += piece.length;
      if (piece.length < next - at) {
        isFull = true;
        endsLine = false;
        break;
      }
      at = next;
      endsLine = end !== -1;
      if (endsLine) line++;
      if (line >= from + lines) isFull = true;
      if (isFull && at >= chunk.length) isEnd = (await readBytes(file, position, 1)).length === 0;
    }
  }
  const bytes = Buffer.concat(kept);
  const isCut = !endsLine && !isEnd;
  const whole = isCut ? bytes.subarray(0, characterEnd(bytes)) : bytes;
  const text = whole.toString("utf8");
  return {
    text: text.replace(/\r?\n$/, ""),
    to: endsLine ? line - 1 : line,
    isEnd,
    isCut,
    isExact: Buffer.from(text).equals(whole),
    isFar,
  };
}

/** Reads `length` bytes at a position, or fewer at the end of the file. */
export async function readBytes(file: FileHandle, position: number, length: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Returns the index after the last complete UTF-8 character. */
function characterEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
