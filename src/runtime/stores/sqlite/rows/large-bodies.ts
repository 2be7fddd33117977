import { blobThreshold, type RunId } from "../../../../kernel/index.ts";
import { putPieces, readPieces, removePieces } from "./blob-pieces.ts";
import type { Database } from "../db/database.ts";

/** What stands in the row of a commit whose text lies apart; no text is empty. */
const elsewhere = "";

/** Then the commit is more than one statement. */
export function isLarge(body: string): boolean {
  return body.length > blobThreshold;
}

/** What a commit's row holds of its text: all of it, unless it is large. */
export function bodyInRow(body: string): string {
  return isLarge(body) ? elsewhere : body;
}

/** Of a row: its text lies apart. */
export function isApart({ body }: { readonly body?: string }): boolean {
  return body === elsewhere;
}

/**
 * The texts of large commits, kept as blobs of their run: it is freed in slices of a few milliseconds, and so is its largest commit. The
 * chain covers the text, wherever it lies.
 */
export class LargeBodies {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** For a commit that was written to its row now. Inside its transaction. */
  keepNow(runId: RunId, number: number, body: string): void {
    if (isLarge(body)) putPieces(this.#database, runId, nameOf(number), new TextEncoder().encode(body));
  }

  read(runId: RunId, number: number): string | undefined {
    const bytes = readPieces(this.#database, runId, nameOf(number));
    return bytes && new TextDecoder().decode(bytes);
  }

  /** Inside a transaction. */
  forgetNow(runId: RunId, number: number): void {
    removePieces(this.#database, runId, nameOf(number));
  }
}

/** The names of their blobs, as a pattern. Those of others are hashes. */
export const commitBodies = "commit *";

function nameOf(number: number): string {
  return `commit ${number}`;
}
