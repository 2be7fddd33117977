import type { QueryResult, QueryResultRow } from "pg";
import { Fault } from "../../../../kernel/index.ts";
import type { Request, Value as SharedValue, Work } from "../../sql/work.ts";
import { storedText } from "./stored-text.ts";

/** A parameter of a statement. */
export type Value = SharedValue | boolean;

/** Sends one statement. */
export type Send = (sql: string, values: readonly unknown[]) => Promise<QueryResult<QueryResultRow>>;

/**
 * Runs statements, on any connection or inside one transaction. In SQL, `{name}` stands for the table `name` in the
 * schema of the store. A search path is not used, because it would be state of a connection, which a transaction
 * pooler does not keep.
 */
export class Queries {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Returns the first row. */
  async get<Row extends object = object>(sql: string, ...values: readonly Value[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0];
  }

  async all<Row extends object>(sql: string, ...values: readonly Value[]): Promise<Row[]> {
    const { rows } = await this.#send(sql, values.map(parameterOf));
    return rows as unknown as Row[];
  }

  /** Runs a statement that writes. Returns the number of rows that were written. */
  async run(sql: string, ...values: readonly Value[]): Promise<number> {
    const { rowCount } = await this.#send(sql, values.map(parameterOf));
    return rowCount ?? 0;
  }

  /** Does the work, one request after the other. */
  async do<Result>(work: Work<Result>): Promise<Result> {
    let step = work.next();
    while (step.done !== true) step = work.next(await this.answer(step.value));
    return step.value;
  }

  protected async answer(request: Request): Promise<unknown> {
    const { kind } = request;
    if (kind === "get") return this.get(request.sql, ...request.values);
    if (kind === "all") return this.all(request.sql, ...request.values);
    if (kind === "run" || kind === "erase") return this.run(request.sql, ...request.values);
    throw new Fault("internal", `work outside a transaction cannot ${kind}`);
  }
}

function parameterOf(value: Value): unknown {
  if (typeof value === "string") return storedText(value);
  if (!Array.isArray(value)) return value;
  return (value as readonly (string | number)[]).map((item) =>
    typeof item === "string" ? storedText(item) : item,
  );
}
