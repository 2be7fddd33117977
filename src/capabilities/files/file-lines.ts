import type { FileHandle } from "node:fs/promises";
import type { CancelSignal } from "../../kernel/index.ts";

/** Lines of a file, as `readLines` returns them. */
export interface LinePage {
  /** Text of the lines, without the line break after the last one. */
  readonly text: string;
  /** Number of the last returned line, starting at 1. If no line is returned, the number of the file's last line. */
  readonly to: number;
  /** Whether the file ends after the returned lines. */
  readonly isEnd: boolean;
  /** Whether the last returned line continues in the file. */
  readonly isCut: boolean;
  /** Whether every byte was valid UTF-8. */
  readonly isExact: boolean;
}

/** Which lines to read. */
export interface LineRange {
  /** Number of the first line, starting at 1. */
  readonly from: number;
  /** Maximum number of lines. */
  readonly lines: number;
  /** Maximum number of bytes of all lines together. */
  readonly maxBytes: number;
  readonly signal: CancelSignal;
}

const chunkBytes = 65_536;
const lineEnd = 0x0a;

/** Reads lines of a file. Holds at most `maxBytes` and one chunk in memory. */
export async function readLines(
  file: FileHandle,
  { from, lines, maxBytes, signal }: LineRange,
): Promise<LinePage> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let line = 1;
  let position = 0;
  let isFull = false;
  let endsLine = true;
  let isEnd = false;
  while (!isFull) {
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
      if (line >= from) {
        const room = maxBytes - keptBytes;
        const piece = chunk.subarray(at, Math.min(next, at + room));
        kept.push(piece);
        keptBytes += piece.length;
        if (piece.length < next - at) {
          isFull = true;
          endsLine = false;
          break;
        }
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
