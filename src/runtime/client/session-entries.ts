import type { ApplyOptions, SessionEntry, SessionSummary } from "../../kernel/index.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { sessionBusy } from "./submit-run.ts";

/** An entry without the fields that the session sets. */
export type EntryBody<Entry = SessionEntry> = Entry extends SessionEntry
  ? Omit<Entry, "id" | "parentId" | "at" | "runId" | "taskId">
  : never;

/** Writes to sessions the entries that belong to no run. */
export class SessionEntryWriter {
  readonly #worker: WorkerContext;
  readonly #scope: Pick<ApplyOptions, "scope">;

  constructor(worker: WorkerContext, scope: Pick<ApplyOptions, "scope">) {
    this.#worker = worker;
    this.#scope = scope;
  }

  create(body: EntryBody, parentId: string | null): SessionEntry {
    const { clock, ids } = this.#worker;
    const id = `${body.type}_${ids.next()}`;
    return { ...body, id, parentId, at: clock.now(), runId: null, taskId: null };
  }

  /** Appends an entry after the current entry. Returns its id. */
  async append({ sessionId, agentId, tenantId, userId }: SessionSummary, body: EntryBody): Promise<string> {
    const entry = this.create(body, null);
    const change = {
      type: "append",
      sessionId,
      agentId,
      entry,
      visibility: "visible",
      atLeaf: true,
    } as const;
    const options = { owner: { tenantId, userId }, whenAt: { sessionId }, ...this.#scope };
    await this.#worker.store.sessions.apply([change], options);
    return entry.id;
  }

  /** Adds entries below their own parents if `options` allow it. Throws if a run of the session is unfinished. */
  async add(
    {
      sessionId,
      agentId,
      tenantId,
      userId,
    }: Pick<SessionSummary, "sessionId" | "agentId" | "tenantId" | "userId">,
    entries: readonly SessionEntry[],
    options: ApplyOptions,
  ): Promise<void> {
    const changes = entries.map(
      (entry) => ({ type: "append", sessionId, agentId, entry, visibility: "visible" }) as const,
    );
    const owner = { tenantId, userId };
    const run = await this.#worker.store.sessions.apply(changes, { owner, ...options, ...this.#scope });
    if (run !== undefined) throw sessionBusy(sessionId, run);
  }
}
