import {
  agentNameOf,
  type AgentId,
  type HiddenItem,
  type OpenApproval,
  type RunId,
  type RunQuery,
  type RunSummary,
  type Runtime,
} from "../../kernel/index.ts";
import { keyOfLetter, keyOfQuestion, keyOfRun, type InboxKey } from "../view/inbox-keys.ts";

/** The two views of an inbox: open items, and items that the person has closed or snoozed. */
export const inboxViews = ["open", "away"] as const;
/** The kinds of what waits for a person. */
export const inboxKinds = ["question", "run", "letter"] as const;

type DeadLetter = Awaited<ReturnType<Runtime["deadLetters"]>>[number];

/** The items of one kind up to the limit. */
interface InboxList<Item> {
  readonly items: readonly Item[];
  /** Whether there are more than the limit. */
  readonly isMore: boolean;
}

/** What waits for a person. */
export interface Inbox {
  readonly questions: InboxList<OpenApproval>;
  readonly runs: InboxList<RunSummary>;
  readonly letters: InboxList<DeadLetter>;
  /** The items in this list that the person has closed or snoozed. */
  readonly hidden: readonly HiddenItem[];
  /** Number of items that match the filters and that the person has closed or snoozed. */
  readonly away: number;
  /** Number of questions in the whole inbox that the person has neither closed nor snoozed. */
  readonly waiting: number;
  /** The runs that ask these questions. */
  readonly asking: readonly RunId[];
  /** The runs in which the person has closed or snoozed every open question. */
  readonly setAside: readonly RunId[];
}

/** The part of an inbox that is read. */
export interface WantedInbox {
  readonly view?: (typeof inboxViews)[number];
  readonly kind?: (typeof inboxKinds)[number];
  readonly agent?: string;
  readonly runId?: string;
  readonly limit?: number;
}

/**
 * The items of one kind: the items of the view up to the limit, and the number of all items that are closed or
 * snoozed.
 */
interface Part<Item> extends InboxList<Item> {
  readonly away: number;
}

function listed<Item>({ items, isMore: hasMore }: Part<Item>): InboxList<Item> {
  return { items, isMore: hasMore };
}

/** Statuses of runs that stopped at a limit and can continue after a top-up. */
const stopped = ["budget_exhausted", "deadline_exceeded"] as const;
/** Number of questions or runs per page. */
const pageSize = 500;

/** Reads everything that waits for a person: questions, runs that stopped at a limit, crash loops and dead letters. */
export class InboxReader {
  readonly #runtime: Runtime;
  readonly #hidden: ReadonlyMap<string, HiddenItem>;
  readonly #wanted: WantedInbox;
  readonly #limit: number;

  constructor(runtime: Runtime, put: readonly HiddenItem[], wanted: WantedInbox) {
    this.#runtime = runtime;
    this.#hidden = new Map(put.map((item) => [item.id, item]));
    this.#wanted = wanted;
    this.#limit = wanted.limit ?? 100;
  }

  async read(): Promise<Inbox> {
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

  /** Whether the person has removed the item from the inbox, and the item has not changed since then. */
  #isAway({ id, at }: InboxKey): boolean {
    return this.#hidden.get(id)?.change === String(at);
  }

  #part<Item extends { readonly runId?: string }>(
    kind: WantedInbox["kind"],
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

  #has(kind: WantedInbox["kind"]): boolean {
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

  /** Yields the runs of the statuses that the inbox shows. */
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

  /** Returns the runs that the person has closed or snoozed. `known` contains runs that were already read. */
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

/** Returns the agent id of the runs of a program that uses the gateway. */
function programOf(name: string): AgentId {
  return `reeve:gateway/${name}` as AgentId;
}
