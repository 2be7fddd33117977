import {
  agentNameOf,
  type AgentId,
  type HiddenItem,
  type InboxOwner,
  type OpenApproval,
  type RunQuery,
  type RunSummary,
  type Runtime,
} from "../../../kernel/index.ts";
import type { Access } from "../../http/access/access.ts";
import { reply, route } from "../../http/route.ts";
import { approval, deadLetter, runId, runSummary, time } from "../../http/schema/run-schemas.ts";
import {
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  text,
} from "../../http/schema/schema.ts";
import { keyOfLetter, keyOfQuestion, keyOfRun, type InboxKey } from "../../view/inbox-keys.ts";

const itemId = text({
  minLength: 1,
  maxLength: 2_400,
  description: "The id of a run or of a message, or `RUN:QUESTION`.",
});
const change = text({
  maxLength: 200,
  description: "The state of the item that the person saw. An item with another one is shown.",
});
const isMore = flag({ description: "Whether there are more than the limit." });
const hidden = list(object({ id: itemId, change, until: nullable(time), at: time }));

const inbox = {
  status: 200,
  description: "What waits for a person.",
  schema: named(
    "Inbox",
    object({
      questions: object(
        { items: list(approval), isMore },
        { description: "The one that has waited longest first." },
      ),
      runs: object(
        { items: list(runSummary), isMore },
        {
          description: "Runs that stopped at a limit or are paused as crash loops, the newest of each first.",
        },
      ),
      letters: object(
        { items: list(deadLetter), isMore },
        { description: "Messages that could not be delivered." },
      ),
      hidden,
      away: integer({ description: "How many items that fit the caller has closed or snoozed." }),
      waiting: integer({
        description: "How many questions of the whole inbox the caller has neither closed nor snoozed.",
      }),
      asking: list(text(), { description: "The runs that ask these questions." }),
      setAside: list(text(), {
        description: "The runs of which the caller has closed or snoozed every open question.",
      }),
    }),
  ),
};

const views = ["open", "away"] as const;
const kinds = ["question", "run", "letter"] as const;

const listInbox = route({
  id: "inbox.list",
  method: "GET",
  path: "/api/inbox",
  summary:
    "List what waits for the caller: questions, runs that stopped at a limit, crash loops and dead letters, without what the caller has closed or snoozed. Costs O(open questions, paused runs, listed and hidden items).",
  scope: "read",
  query: object({
    view: optional(
      choice(views, { description: "`away`: what the caller has closed or snoozed. Default: open." }),
    ),
    kind: optional(choice(kinds)),
    agent: optional(
      text({
        minLength: 1,
        maxLength: 256,
        description:
          "Name of the agent that asks, stopped or was written to, or of a program of the gateway.",
      }),
    ),
    runId: optional(runId),
    limit: optional(
      integer({ minimum: 1, maximum: 1_000, description: "Maximum number of each kind. Default: 100." }),
    ),
  }),
  responses: [inbox],
  handle: async ({ runtime, access, query }) => {
    const put = await runtime.inbox.hidden(inboxOf(access));
    return reply(inbox, await new InboxReader(runtime, put, query).read());
  },
});

type DeadLetter = Awaited<ReturnType<Runtime["deadLetters"]>>[number];

interface Wanted {
  readonly view?: (typeof views)[number];
  readonly kind?: (typeof kinds)[number];
  readonly agent?: string;
  readonly runId?: string;
  readonly limit?: number;
}

/** The items of one kind: those of the view up to the limit, and how many of all are put away. */
interface Part<Item> {
  readonly items: readonly Item[];
  readonly isMore: boolean;
  readonly away: number;
}

function listed<Item>({ items, isMore: hasMore }: Part<Item>) {
  return { items, isMore: hasMore };
}

/** Statuses of runs that a limit stopped, and that continue after a top-up. */
const stopped = ["budget_exhausted", "deadline_exceeded"] as const;
/** Number of questions or runs per page. */
const pageSize = 500;

/** Reads the inbox of one person. */
class InboxReader {
  readonly #runtime: Runtime;
  readonly #hidden: ReadonlyMap<string, HiddenItem>;
  readonly #wanted: Wanted;
  readonly #limit: number;

  constructor(runtime: Runtime, put: readonly HiddenItem[], wanted: Wanted) {
    this.#runtime = runtime;
    this.#hidden = new Map(put.map((item) => [item.id, item]));
    this.#wanted = wanted;
    this.#limit = wanted.limit ?? 100;
  }

  async read() {
    const open = await this.#openQuestions();
    const questions = this.#part("question", open, keyOfQuestion, ({ agentId }) => agentId);
    const letters = this.#part("letter", await this.#letters(), keyOfLetter, ({ message }) => message.to);
    const runs = await this.#runs();
    const shown = [
      ...questions.items.map(keyOfQuestion),
      ...letters.items.map(keyOfLetter),
      ...runs.items.map(keyOfRun),
    ];
    const waiting = open.filter((each) => !this.#isAway(keyOfQuestion(each)));
    const asking = new Set(waiting.map((each) => each.runId));
    return {
      questions: listed(questions),
      runs: listed(runs),
      letters: listed(letters),
      hidden: shown.flatMap(({ id }) => this.#hidden.get(id) ?? []),
      away: questions.away + letters.away + runs.away,
      waiting: waiting.length,
      asking: [...asking],
      setAside: [...new Set(open.map((each) => each.runId))].filter((id) => !asking.has(id)),
    };
  }

  /** Whether the person has taken the item off the inbox, and it has not changed since. */
  #isAway({ id, at }: InboxKey): boolean {
    return this.#hidden.get(id)?.change === String(at);
  }

  #part<Item extends { readonly runId?: string }>(
    kind: Wanted["kind"],
    all: readonly Item[],
    keyOf: (item: Item) => InboxKey,
    agentOf: (item: Item) => AgentId,
  ): Part<Item> {
    const fitting = this.#has(kind) ? all.filter((item) => this.#fits(item.runId, agentOf(item))) : [];
    const away = fitting.filter((item) => this.#isAway(keyOf(item)));
    const shown = this.#wanted.view === "away" ? away : fitting.filter((item) => !this.#isAway(keyOf(item)));
    return {
      items: shown.slice(0, this.#limit),
      isMore: shown.length > this.#limit,
      away: away.length,
    };
  }

  #has(kind: Wanted["kind"]): boolean {
    return this.#wanted.kind === undefined || this.#wanted.kind === kind;
  }

  #fits(ofRun: string | undefined, agentId: AgentId): boolean {
    const { runId: wanted, agent } = this.#wanted;
    if (wanted !== undefined && wanted !== ofRun) return false;
    return agent === undefined || agentNameOf(agentId) === agent || agentId === programOf(agent);
  }

  async #openQuestions(): Promise<readonly OpenApproval[]> {
    const open: OpenApproval[] = [];
    for (let after: string | null = null; ;) {
      const page: Awaited<ReturnType<Runtime["approvals"]>> = await this.#runtime.approvals({
        limit: pageSize,
        ...(after !== null && { after }),
      });
      open.push(...page.approvals);
      if (page.next === null) return open;
      after = page.next;
    }
  }

  async #letters(): Promise<readonly DeadLetter[]> {
    return this.#has("letter") ? this.#runtime.deadLetters() : [];
  }

  async #runs(): Promise<Part<RunSummary>> {
    if (!this.#has("run")) return { items: [], isMore: false, away: 0 };
    const known = new Map<string, RunSummary>();
    let [shown, isWhole]: [RunSummary[], boolean] = [[], true];
    for await (const run of this.#candidates()) {
      if (this.#isAway(keyOfRun(run))) known.set(run.runId, run);
      else shown.push(run);
      // Runs that stopped may be many, and a person reads some of them at a time.
      if (shown.length > this.#limit) {
        isWhole = false;
        break;
      }
    }
    const away = isWhole ? [...known.values()] : await this.#awayRuns(known);
    if (this.#wanted.view === "away") [shown, isWhole] = [away, true];
    return {
      items: shown.slice(0, this.#limit),
      isMore: shown.length > this.#limit,
      away: away.length,
    };
  }

  /** The runs of the kinds that the inbox has. */
  async *#candidates(): AsyncIterable<RunSummary> {
    const { runId: wanted, agent } = this.#wanted;
    if (wanted !== undefined) {
      const run = await (await this.#runtime.find(wanted))?.summary();
      if (run !== undefined && isInInbox(run) && this.#fits(run.runId, run.agentId)) yield run;
      return;
    }
    const agents = agent === undefined ? [{}] : [{ agentName: agent }, { agentId: programOf(agent) }];
    for (const each of agents) {
      for await (const run of this.#list({ ...each, status: "paused" })) if (isInInbox(run)) yield run;
      yield* this.#list({ ...each, status: stopped });
    }
  }

  async *#list(query: RunQuery): AsyncIterable<RunSummary> {
    // A few more than are shown, because some of them may be put away.
    const limit = Math.min(pageSize, this.#limit + this.#hidden.size + 1);
    for (let after: string | null = null; ;) {
      const page: Awaited<ReturnType<Runtime["list"]>> = await this.#runtime.list({
        ...query,
        limit,
        ...(after !== null && { after }),
      });
      yield* page.runs;
      if (page.next === null) return;
      after = page.next;
    }
  }

  /** The runs that the person has put away, of which some are known. */
  async #awayRuns(known: ReadonlyMap<string, RunSummary>): Promise<RunSummary[]> {
    const away: RunSummary[] = [];
    for (const id of this.#hidden.keys()) {
      if (!isRunId.test(id)) continue;
      const run = known.get(id) ?? (await (await this.#runtime.find(id))?.summary());
      if (run === undefined || !isInInbox(run) || !this.#isAway(keyOfRun(run))) continue;
      if (this.#fits(run.runId, run.agentId)) away.push(run);
    }
    return away;
  }
}

const isRunId = /^run_[A-Za-z0-9_-]+$/u;

function isInInbox({ status, waitsFor }: RunSummary): boolean {
  return stopped.some((each) => each === status) || (status === "paused" && waitsFor.includes("crash_loop"));
}

/** The agent of the runs of a program of the gateway. */
function programOf(name: string): AgentId {
  return `reeve:gateway/${name}` as AgentId;
}

const hiddenItems = {
  status: 200,
  description: "What the caller has taken off their inbox.",
  schema: object({ hidden }),
};
const listHidden = route({
  id: "inbox.hidden",
  method: "GET",
  path: "/api/inbox/hidden",
  summary: "List what the caller has closed or snoozed. It decides nothing, and others still see it.",
  scope: "read",
  responses: [hiddenItems],
  handle: async ({ runtime, access }) =>
    reply(hiddenItems, { hidden: await runtime.inbox.hidden(inboxOf(access)) }),
});

/** Number of items per request. */
const mostItems = 1_000;

const hideItems = route({
  id: "inbox.hide",
  method: "POST",
  path: "/api/inbox/hidden",
  summary: "Take items off the caller's inbox until they change, or until a time.",
  scope: "run",
  body: object({
    items: list(object({ id: itemId, change }), { minItems: 1, maxItems: mostItems }),
    until: optional(nullable(time)),
  }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { items, until = null } }) => {
    const owner = inboxOf(access);
    await runtime.inbox.hide(
      items.map((item) => ({ ...item, until })),
      owner,
    );
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(owner) });
  },
});
const restoreItems = route({
  id: "inbox.restore",
  method: "POST",
  path: "/api/inbox/restore",
  summary: "Put items back on the caller's inbox.",
  scope: "run",
  body: object({ ids: list(itemId, { minItems: 1, maxItems: mostItems }) }),
  responses: [hiddenItems],
  handle: async ({ runtime, access, body: { ids } }) => {
    const owner = inboxOf(access);
    for (const id of ids) await runtime.inbox.restore(id, owner);
    return reply(hiddenItems, { hidden: await runtime.inbox.hidden(owner) });
  },
});

/** Tokens without a user have an inbox each. */
function inboxOf({ tenantId, userId, name }: Access): InboxOwner {
  return { tenantId, userId: userId ?? name };
}

export const inboxRoutes = [listInbox, listHidden, hideItems, restoreItems] as const;
