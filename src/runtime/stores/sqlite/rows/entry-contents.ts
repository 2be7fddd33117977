import { Fault } from "../../../../kernel/index.ts";
import { joinText, type LargeValues, type SplitText } from "../../codec/large-values.ts";
import type { EntryRest } from "../../codec/entry-batch.ts";
import type { WithContents } from "../../codec/commit-row.ts";
import type { EntryText as StoredText } from "../../sql/entry-row.ts";
import { OwnerKind } from "../../codec/owner-kind.ts";
import { tenantText } from "../../codec/stored-run.ts";
import type { ContentRows } from "./content-rows.ts";

type EntryText = StoredText & WithContents;

/** The large values of session entries. */
export class EntryContents {
  readonly #rows: ContentRows;
  readonly #large: LargeValues;

  constructor(rows: ContentRows, large: LargeValues) {
    this.#rows = rows;
    this.#large = large;
  }

  split(rests: readonly EntryRest[]): SplitText {
    return this.#large.splitItems(rests);
  }

  /** Stores the large values of a row of entries. Call inside the transaction that inserts the row. */
  keepNow(tenantId: string | null, row: number, { values }: SplitText): void {
    if (values.length === 0) return;
    this.#rows.keepNow(tenantText(tenantId), { kind: OwnerKind.ENTRIES, id: row }, values);
  }

  /**
   * Reads rows with the contents that they refer to, outside a transaction. If a content is missing, another process
   * has removed the entries meanwhile, and the rows are read again.
   */
  load<Row extends EntryText>(read: () => Row[]): Row[] {
    return this.#withContents(read()) ?? this.#withContents(read()) ?? missing();
  }

  #withContents<Row extends EntryText>(rows: Row[]): Row[] | undefined {
    if (rows.every(({ refs }) => refs === null)) return rows;
    const whole: Row[] = [];
    for (const row of rows) {
      const contents = row.refs === null ? undefined : this.#rows.load(row.refs);
      if (row.refs !== null && contents === undefined) return undefined;
      whole.push(contents === undefined ? row : { ...row, contents });
    }
    return whole;
  }

  /** Returns the members of the entries. Loads the contents of a row that `load` did not return. */
  restsOf({ body, refs, contents }: EntryText): readonly EntryRest[] {
    const loaded = refs === null ? undefined : (contents ?? this.#rows.load(refs) ?? missing());
    return joinText(body, refs, loaded) as readonly EntryRest[];
  }
}

function missing(): never {
  throw new Fault("store_corrupt", "a content of a session entry is missing");
}
