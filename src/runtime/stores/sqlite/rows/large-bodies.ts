import { blobThreshold, type RunId } from "../../../../kernel/index.ts";
import { putPieces, readPieces, removePieces } from "./blob-pieces.ts";
import type { Database } from "../db/database.ts";

/** Stored in the row of a commit whose text is in a blob. The text of a commit is never empty. */
const elsewhere = "";

/** Whether the text is stored in a blob. Writing the commit then takes more than one statement. */
export function isLarge(body: string): boolean {
  return body.length > blobThreshold;
}

/** Returns what the row stores: the text, or a marker if the text is large. */
export function bodyInRow(body: string): string {
  return isLarge(body) ? elsewhere : body;
}

/** Whether the text of this row is in a blob. */
export function isApart({ body }: { readonly body?: string }): boolean {
  return body === elsewhere;
}

/**
 * Stores the texts of large commits as blobs of their run, because the collector frees blobs in slices of a few
 * milliseconds. The chain covers the text wherever it is stored.
 */
export class LargeBodies {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores the text of a commit whose row was just inserted. Call inside its transaction. */
  keepNow(runId: RunId, number: number, body: string): void {
    if (isLarge(body)) putPieces(this.#database, runId, nameOf(number), new TextEncoder().encode(body));
  }

  read(runId: RunId, number: number): string | undefined {
    const bytes = readPieces(this.#database, runId, nameOf(number));
    return bytes && new TextDecoder().decode(bytes);
  }

  /** Removes the text immediately. Call inside a transaction. */
  forgetNow(runId: RunId, number: number): void {
    removePieces(this.#database, runId, nameOf(number));
  }
}

/** A GLOB pattern for the names of these blobs. All other blobs are named by a hash. */
export const commitBodies = "commit *";

function nameOf(number: number): string {
  return `commit ${number}`;
}
