import {
  type AgentId,
  type AgentPhase,
  type CompactSessionOptions,
  type CustomEntry,
  Fault,
  type ForkSessionOptions,
  type HostedAgent,
  type ImportedSession,
  type Journal,
  type JsonValue,
  type Model,
  type ModelReference,
  type MoveOptions,
  type RunHandle,
  type RuntimeSessions,
  type SearchOptions,
  type SearchPage,
  type SessionCompaction,
  type SessionEntriesOptions,
  type SessionEntry,
  type SessionEntryPage,
  type SessionFileChanges,
  type SessionId,
  type SessionListOptions,
  type SessionNavigation,
  type SessionNode,
  type SessionPage,
  type SessionPathOptions,
  type SessionSummary,
  type SessionTree,
  type SessionUsage,
  type SubmitOptions,
  type TenantScope,
  type ThinkingLevel,
  type UnsentInput,
  agentIdOf,
  assertJson,
  checkChoice,
  firstUnfinishedRun,
  formatSessionId,
  parseRunId,
  parseSessionId,
  sessionSettings,
  thinkingLevels,
  unfinishedRuns,
} from "../../kernel/index.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import { type WorkerContext, hostedAgent, portFor } from "../process/worker-context.ts";
import { contextUsage } from "../process/context-usage.ts";
import { parseModelName, resolveModel } from "../process/session-model.ts";
import {
  checkName,
  checkText,
  compactionTable,
  customTable,
  entriesTable,
  forkTable,
  listTable,
  moveTable,
  pathTable,
  readImported,
  searchTable,
  sessionQuery,
} from "./session-arguments.ts";
import { checkCompaction, compactionOf, hasSummary } from "./compact-session.ts";
import { SessionEntryWriter, type EntryBody } from "./session-entries.ts";
import { fileChangesAfter } from "./file-changes.ts";
import { searchSessions } from "./session-search.ts";
import { sessionBusy } from "./submit-run.ts";
import { resubmissionOf, unsentInputs } from "./unsent-input.ts";

interface GrowingNode extends SessionNode {
  label: string | null;
  isOnPath: boolean;
  readonly children: string[];
}

/** Builds the tree of the visible entries of a session. An entry whose parent was removed becomes a root. */
function sessionTree(entries: readonly SessionEntry[], leafId: string | null): SessionTree {
  const nodes = new Map<string, GrowingNode>();
  const roots: string[] = [];
  for (const entry of entries) {
    if (entry.type === "leaf" || entry.type === "session_info") continue;
    if (entry.type === "label") {
      const labelled = nodes.get(entry.targetId);
      if (labelled !== undefined) labelled.label = entry.label;
      continue;
    }
    const node: GrowingNode = { entry, label: null, isOnPath: false, children: [] };
    nodes.set(entry.id, node);
    const parent = entry.parentId === null ? undefined : nodes.get(entry.parentId);
    (parent?.children ?? roots).push(entry.id);
  }
  for (let id = leafId; id !== null;) {
    const node = nodes.get(id);
    // An entry that is marked already closes a circle.
    if (node === undefined || node.isOnPath) break;
    node.isOnPath = true;
    id = node.entry.parentId;
  }
  return { leafId, roots, nodes: [...nodes.values()] };
}

/**
 * S5: throws `agent_busy` if a run in the session is unfinished. The change itself checks this again, because a run may
 * start while a handler of an extension runs.
 */
async function requireIdle({ store }: WorkerContext, sessionId: SessionId): Promise<void> {
  const open = await firstUnfinishedRun(store.journal, { sessionId });
  if (open !== undefined) throw sessionBusy(sessionId, open);
}

/**
 * Asks the extensions of the session's agent before a change of a session. Throws `permission_denied` if an extension
 * refuses. If the agent is not registered with this runtime, no extension is asked.
 */
async function askExtensions(
  worker: WorkerContext,
  { sessionId, agentId, tenantId, userId }: SessionSummary,
  navigation: SessionNavigation,
): Promise<void> {
  const agent = worker.agents.get(agentId);
  if (agent?.beforeNavigation === undefined) return;
  const port = portFor(worker, { sessionId, runId: null, tenantId, userId });
  const reason = await agent.beforeNavigation(navigation, port);
  if (reason === undefined) return;
  throw new Fault("permission_denied", `session ${sessionId} stays as it is: ${reason}`, {
    details: { sessionId, event: navigation.type },
  });
}

/**
 * Returns what an agent does in a session: `compaction` if the session is being compacted, `turn` if a run of the agent
 * has not ended, otherwise `idle`. Counts only the runs of `owner`. If `owner` is absent, all runs count.
 */
async function agentPhase(
  journal: Pick<Journal, "list">,
  sessionId: SessionId,
  agentId: AgentId,
  owner: TenantScope | undefined,
): Promise<AgentPhase> {
  let phase: AgentPhase = "idle";
  for await (const run of unfinishedRuns(journal, { sessionId, ...owner })) {
    if (run.kind === "compaction") return "compaction";
    if (run.agentId === agentId) phase = "turn";
  }
  return phase;
}

export interface StoredSessionsOptions {
  readonly worker: WorkerContext;
  readonly life: Pick<RuntimeLifetime, "check">;
  /** S6: the tenant and user to which all calls are restricted. */
  readonly scope?: TenantScope | undefined;
  readonly submit: Submit;
  /** Submits a run that compacts the session. */
  readonly compact: Submit;
}

type Submit = (agent: HostedAgent, input: JsonValue, options: SubmitOptions) => Promise<RunHandle>;

/** The conversations of a store, for applications. Each change is one transaction of the store. */
export class StoredSessions implements RuntimeSessions {
  readonly #worker: WorkerContext;
  readonly #life: Pick<RuntimeLifetime, "check">;
  readonly #submit: Submit;
  readonly #compact: Submit;
  /** S6: the scope, in the form of the store's options. Empty without a scope. */
  readonly #scope: { readonly scope?: TenantScope };
  readonly #entries: SessionEntryWriter;

  constructor({ worker, life, scope, submit, compact }: StoredSessionsOptions) {
    this.#scope = scope === undefined ? {} : { scope };
    this.#worker = worker;
    this.#entries = new SessionEntryWriter(worker, this.#scope);
    this.#life = life;
    this.#submit = submit;
    this.#compact = compact;
  }

  async list(options: SessionListOptions = {}): Promise<SessionPage> {
    this.#life.check();
    listTable.read("sessions.list()", options);
    const { text, limit, after } = options;
    return this.#worker.store.sessions.list({
      ...sessionQuery(options, this.#scope.scope),
      withWorkers: false,
      ...(text !== undefined && { text }),
      ...(limit !== undefined && { limit }),
      ...(after !== undefined && { after }),
    });
  }

  async get(sessionId: string): Promise<SessionSummary | undefined> {
    this.#life.check();
    return this.#worker.store.sessions.find(parseSessionId(sessionId), this.#scope.scope);
  }

  async path(sessionId: string, options: SessionPathOptions = {}): Promise<readonly SessionEntry[]> {
    pathTable.read("sessions.path()", options);
    checkChoice("sessions.path()", "from", options.from, ["root", "compaction"]);
    if (options.limit !== undefined && options.from === "compaction")
      throw new Fault(
        "invalid_argument",
        'invalid options of sessions.path(): limit and from: "compaction" exclude each other; leave one of them out',
      );
    const { sessionId: id } = await this.#find(sessionId);
    return (await this.#path(id, options)).entries;
  }

  async entries(sessionId: string, options: SessionEntriesOptions = {}): Promise<SessionEntryPage> {
    entriesTable.read("sessions.entries()", options);
    const { limit = 200, after } = options;
    const { sessionId: id } = await this.#find(sessionId);
    const query = { ...this.#scope, limit: limit + 1, ...(after !== undefined && { after }) };
    const found = await this.#worker.store.sessions.read(id, query);
    const entries = found.slice(0, limit).map(({ entry }) => entry);
    return { entries, next: found.length > limit ? (entries.at(-1)?.id ?? null) : null };
  }

  async tree(sessionId: string): Promise<SessionTree> {
    const { sessionId: id, leafId } = await this.#find(sessionId);
    const stored = await this.#worker.store.sessions.read(id, this.#scope);
    return sessionTree(
      stored.map(({ entry }) => entry),
      leafId,
    );
  }

  async name(sessionId: string, name: string): Promise<void> {
    checkName("name", name);
    await this.#entries.append(await this.#find(sessionId), { type: "session_info", name });
  }

  async label(sessionId: string, entryId: string, label: string | null): Promise<void> {
    checkText("entryId", entryId);
    if (label !== null) checkName("label", label);
    await this.#entries.append(await this.#find(sessionId), { type: "label", targetId: entryId, label });
  }

  async move(sessionId: string, entryId: string | null, options: MoveOptions = {}): Promise<string | null> {
    moveTable.read("sessions.move()", options);
    if (entryId !== null) checkText("entryId", entryId);
    const { summary } = options;
    if (summary !== undefined) this.#checkLarge("summary", summary);
    const session = await this.#find(sessionId);
    const { leafId } = session;
    const entries = [this.#entries.create({ type: "leaf", targetId: entryId }, entryId)];
    if (summary !== undefined) {
      if (leafId === null)
        throw new Fault(
          "invalid_argument",
          `invalid summary: session ${sessionId} has no branch to leave; omit it`,
        );
      entries.push(this.#entries.create({ type: "branch_summary", summary, fromId: leafId }, entryId));
    }
    const { sessionId: id } = session;
    const event = { sessionId: id, leafId, targetId: entryId };
    await requireIdle(this.#worker, session.sessionId);
    await askExtensions(this.#worker, session, { type: "session_before_tree", event });
    await this.#entries.add(session, entries, { whenIdle: id, whenAt: { sessionId: id } });
    return summary === undefined ? entryId : (entries.at(-1)?.id ?? null);
  }

  async fork(sessionId: string, options: ForkSessionOptions = {}): Promise<SessionId> {
    forkTable.read("sessions.fork()", options);
    const { entryId, name } = options;
    if (name !== undefined) checkName("name", name);
    const session = await this.#find(sessionId);
    const newId =
      options.sessionId === undefined
        ? formatSessionId(this.#worker.ids.next())
        : parseSessionId(options.sessionId);
    const { sessionId: from } = session;
    const leafId = entryId ?? session.leafId;
    const origin = { sessionId: from, entryId: leafId };
    if (entryId === undefined) await requireIdle(this.#worker, session.sessionId);
    await askExtensions(this.#worker, session, { type: "session_before_fork", event: origin });
    const link = this.#entries.create({ type: "custom", customType: forkType, data: origin }, leafId);
    const named = name === undefined ? [] : [this.#entries.create({ type: "session_info", name }, link.id)];
    await this.#entries.add({ ...session, sessionId: newId }, [link, ...named], {
      // Later changes do not affect the path of an entry.
      ...(entryId === undefined && { whenIdle: from }),
      whenNew: newId,
      whenAt: { sessionId: from },
      ...(leafId !== null && { copy: { from, leafId, to: newId } }),
    });
    return newId;
  }

  async import(imported: ImportedSession): Promise<SessionId> {
    this.#life.check();
    const entries = readImported(imported);
    for (const entry of entries) this.#checkLarge("entry", entry as unknown as JsonValue);
    const { agentId, sessionId, tenantId = null, userId = null } = imported;
    const id = sessionId === undefined ? formatSessionId(this.#worker.ids.next()) : parseSessionId(sessionId);
    const { scope } = this.#scope;
    sessionQuery({ ...(tenantId !== null && { tenantId }), ...(userId !== null && { userId }) }, scope);
    const owner = { tenantId: scope?.tenantId ?? tenantId, userId: scope?.userId ?? userId };
    const session = { sessionId: id, agentId: agentIdOf(agentId), ...owner };
    await this.#entries.add(session, entries, { whenNew: id });
    return id;
  }

  async switch(sessionId: string, targetId: string | null): Promise<SessionId> {
    const session = await this.#find(sessionId);
    const target = targetId === null ? null : (await this.#find(targetId)).sessionId;
    const event = { sessionId: session.sessionId, targetSessionId: target };
    await requireIdle(this.#worker, session.sessionId);
    await askExtensions(this.#worker, session, { type: "session_before_switch", event });
    return target ?? formatSessionId(this.#worker.ids.next());
  }

  async append(sessionId: string, entry: CustomEntry): Promise<string> {
    customTable.read("sessions.append()", entry);
    const { customType } = entry;
    checkName("customType", customType);
    const body: EntryBody =
      "message" in entry
        ? { type: "custom_message", customType, message: entry.message }
        : { type: "custom", customType, data: entry.data };
    assertJson(body, "entry");
    this.#checkLarge("entry", body);
    if ("message" in entry)
      this.#worker.sizes.assertInput(entry.message.content as JsonValue, "the entry of a session");
    return this.#entries.append(await this.#find(sessionId), body);
  }

  compact(sessionId: string, compaction: SessionCompaction): Promise<string>;
  compact(sessionId: string, options?: CompactSessionOptions): Promise<RunHandle>;
  async compact(
    sessionId: string,
    options: SessionCompaction | CompactSessionOptions = {},
  ): Promise<string | RunHandle> {
    if (hasSummary(options)) return this.#appendSummary(sessionId, options);
    const instructions = checkCompaction(options);
    const session = await this.#find(sessionId);
    const { agent, submission } = compactionOf(this.#worker, session);
    // Like a compaction that follows a run: a resolver makes the agent of both from the metadata.
    const { runs } = await this.#worker.store.journal.list({
      sessionId: session.sessionId,
      kind: "invocation",
      limit: 1,
    });
    const { metadata = {} } = runs[0] ?? {};
    return this.#compact(agent, { ...instructions, manual: true }, { ...submission, metadata });
  }

  async #appendSummary(sessionId: string, compaction: SessionCompaction): Promise<string> {
    compactionTable.read("sessions.compact()", compaction);
    const { summary, firstKeptEntryId } = compaction;
    this.#checkLarge("summary", summary);
    const session = await this.#find(sessionId);
    const { entries, leafId } = await this.#path(session.sessionId, { from: "compaction" });
    if (!entries.some(({ id }) => id === firstKeptEntryId))
      throw new Fault(
        "not_found",
        `entry ${firstKeptEntryId} is not in the part of session ${sessionId} that the model sees; use an entry of path(sessionId, { from: "compaction" })`,
      );
    const { tokensBefore = contextUsage(entries, () => undefined).tokens } = compaction;
    const { model, thinkingLevel } = sessionSettings(entries);
    const entry = this.#entries.create(
      {
        type: "compaction",
        summary,
        firstKeptEntryId,
        tokensBefore,
        ...(model !== null && { model }),
        ...(thinkingLevel !== null && { thinkingLevel }),
      },
      leafId,
    );
    const { sessionId: id } = session;
    await this.#entries.add(session, [entry], { whenIdle: id, whenAt: { sessionId: id, leafId } });
    return entry.id;
  }

  async setModel(sessionId: string, model: string): Promise<void> {
    const reference = parseModelName(model);
    await this.#entries.append(await this.#find(sessionId), { type: "model_change", ...reference });
  }

  async setThinkingLevel(sessionId: string, level: ThinkingLevel): Promise<void> {
    checkChoice("sessions.setThinkingLevel()", "level", level ?? "", thinkingLevels);
    await this.#entries.append(await this.#find(sessionId), { type: "thinking_level_change", level });
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchPage> {
    this.#life.check();
    searchTable.read("sessions.search()", options);
    checkText("text", text);
    const { sessionId, limit = 20, after } = options;
    const { store, eventLoop } = this.#worker;
    const search = {
      text,
      limit,
      query: sessionQuery(options, this.#scope.scope),
      ...this.#scope,
      ...(sessionId !== undefined && { sessionId: parseSessionId(sessionId) }),
      ...(after !== undefined && { after }),
    };
    return searchSessions(store.sessions, search, eventLoop);
  }

  async contextUsage(sessionId: string): Promise<SessionUsage> {
    const session = await this.#find(sessionId);
    const { entries } = await this.#path(session.sessionId, { from: "compaction" });
    const agent = this.#worker.agents.get(session.agentId);
    const find = (reference: ModelReference | null): Model | undefined =>
      reference === null ? agent?.models?.["main"] : resolveModel(this.#worker, agent, reference);
    return contextUsage(entries, find);
  }

  async fileChanges(sessionId: string, entryId: string): Promise<SessionFileChanges> {
    checkText("entryId", entryId);
    const { sessionId: id } = await this.#find(sessionId);
    const changes = await fileChangesAfter(this.#worker.store, id, { entryId, ...this.#scope });
    if (changes !== undefined) return changes;
    throw new Fault("not_found", `session ${sessionId} has no entry ${entryId}; use an entry of its tree`);
  }

  async unsent(sessionId: string): Promise<readonly UnsentInput[]> {
    const { sessionId: id } = await this.#find(sessionId);
    const { store, hash } = this.#worker;
    return unsentInputs(store, id, { hash, ...this.#scope });
  }

  async resend(runId: string): Promise<RunHandle> {
    this.#life.check();
    const find = (agentId: HostedAgent["id"]): HostedAgent => hostedAgent(this.#worker, agentId);
    const { store, hash } = this.#worker;
    const { run, input, options } = await resubmissionOf(store, parseRunId(runId), find, {
      hash,
      ...this.#scope,
    });
    return this.#submit(find(run.agentId), input, options);
  }

  async phase(sessionId: string, agentId: string): Promise<AgentPhase> {
    this.#life.check();
    const [id, agent] = [parseSessionId(sessionId), agentIdOf(agentId)];
    // In a session of the scope, the runs of others count as well, because they keep the session busy.
    const isOwn = (await this.get(sessionId)) !== undefined;
    return agentPhase(this.#worker.store.journal, id, agent, isOwn ? undefined : this.#scope.scope);
  }

  async delete(sessionId: string): Promise<void> {
    this.#life.check();
    const run = await this.#worker.store.sessions.delete(parseSessionId(sessionId), this.#scope.scope);
    if (run !== undefined) throw sessionBusy(parseSessionId(sessionId), run);
    await this.#worker.homes.sweep();
  }

  async #find(sessionId: string): Promise<SessionSummary> {
    const found = await this.get(sessionId);
    if (found === undefined)
      throw new Fault("not_found", `session ${sessionId} does not exist in this store`);
    return found;
  }

  async #path(
    sessionId: SessionId,
    options: SessionPathOptions,
  ): Promise<{ readonly leafId: string | null; readonly entries: readonly SessionEntry[] }> {
    const path = await this.#worker.store.sessions.readPath(sessionId, { ...options, ...this.#scope });
    if (path !== undefined) return path;
    throw new Fault(
      "not_found",
      `session ${sessionId} has no entry ${options.leafId}; use an entry of its tree`,
    );
  }

  #checkLarge(name: string, value: JsonValue): void {
    if (name === "summary") checkText(name, value);
    this.#worker.sizes.assert(value, `the ${name} of a session`);
  }
}

/** The type of the entry in which a forked session names the session that it was copied from. */
const forkType = "fork";
