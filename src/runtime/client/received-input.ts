import {
  CancellationError,
  canonicalJson,
  Fault,
  rootTaskId as root,
  type CancelSignal,
  type Guest,
  type Mail,
  type MailBody,
  type QueuedInput,
  type ReceivedInput,
  type RunId,
} from "../../kernel/index.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import { RunState } from "../journal/run-state.ts";
import { queuedInputs } from "../journal/queued-inputs.ts";
import { submittedAs } from "../journal/wait-names.ts";
import type { RunStore } from "./run-store.ts";

/** Reads the steering and the follow-ups that were sent to a run, in the order of arrival. */
export async function readInput(
  { events, mailbox }: Pick<RunStore, "events" | "mailbox">,
  runId: RunId,
): Promise<readonly ReceivedInput[]> {
  // The mailbox is read first: mail that its owner applies meanwhile is then in both, and not in neither.
  const waiting = (await mailbox.read(runId)).flatMap((mail) => inputOf(mail));
  const applied: ReceivedInput[] = [];
  for await (const event of events.read(runId))
    if (event.type === "run_steer") applied.push({ ...event.data, taskId: event.taskId, seq: event.seq });
  return [...applied, ...waiting.filter(({ inputId }) => !applied.some((each) => each.inputId === inputId))];
}

/**
 * Whether a run has received an input with this id. Throws `already_exists` if it has received another input with
 * this id. An input that retention has erased is not compared. Costs O(events of the run).
 */
export async function isReceived(
  store: Pick<RunStore, "events" | "mailbox">,
  runId: RunId,
  inputId: string,
  { kind, input, taskId }: Pick<ReceivedInput, "kind" | "input" | "taskId">,
): Promise<boolean> {
  const known = (await readInput(store, runId)).find((each) => each.inputId === inputId);
  if (known === undefined) return false;
  const isSame = known.input === null || canonicalJson(known.input) === canonicalJson(input);
  if (isSame && known.kind === kind && known.taskId === taskId) return true;
  throw new Fault(
    "already_exists",
    `${runId} has received another input with the id ${JSON.stringify(inputId)}: choose another id, or omit it`,
    { details: { runId, inputId } },
  );
}

function inputOf({ id, from: by, body }: Mail): readonly ReceivedInput[] {
  if (body.type !== "steer" && body.type !== "follow_up") return [];
  const { type: kind, taskId = root, ...input } = body;
  const runId = submittedAs(id);
  return [{ kind, by, taskId, inputId: id, ...input, ...(runId && { submittedAs: runId }), seq: null }];
}

/** Reads the inputs that no task has read. */
export async function readQueue(store: RunStore, runId: RunId): Promise<readonly QueuedInput[]> {
  // The mailbox is read first: mail that its owner applies meanwhile is then in both, and not in neither.
  const waiting = (await store.mailbox.read(runId)).flatMap((mail) => inputOf(mail));
  const { queued, fates } = await readFates(store, runId);
  return [
    ...queued,
    ...waiting.flatMap(({ taskId, kind, input, inputId }) =>
      inputId === undefined || fates.has(inputId) ? [] : [{ taskId, kind, input, inputId }],
    ),
  ];
}

/** The fate of the inputs that the owner of a run has taken out of the mailbox, according to the journal. */
interface Fates {
  readonly queued: readonly QueuedInput[];
  /** What happened to each input, by its id. */
  readonly fates: ReadonlyMap<string, "withdrawn" | "queued" | "taken">;
}

/** Reads the queues and the events of a run from the same commits, so that they belong to the same moment. */
async function readFates({ journal }: Pick<RunStore, "journal">, runId: RunId): Promise<Fates> {
  const state = new RunState("refuse");
  const fates = new Map<string, "withdrawn" | "queued" | "taken">();
  for await (const commit of journal.read(runId)) {
    state.fold(commit);
    for (const { type, data } of commit.events ?? []) {
      if (type === "run_steer" && data.inputId !== undefined) fates.set(data.inputId, "taken");
      if (type === "input_withdraw") fates.set(data.inputId, "withdrawn");
    }
  }
  const queued = queuedInputs(state);
  for (const { inputId } of queued) fates.set(inputId, "queued");
  return { queued, fates };
}

/** The parts of a run that are needed to withdraw an input. */
interface WithdrawingRun {
  readonly runId: RunId;
  readonly store: RunStore;
  readonly life: RuntimeLifetime | undefined;
  /** Sends a command and returns its id. */
  readonly send: (body: MailBody) => Promise<string>;
}

/**
 * Withdraws an input. The owner of the run removes the input from its queue and writes an event about this, in the
 * commit that consumes the command. If the command is consumed without the event, it came too late. Nothing else is
 * stored, so that the answer is the same after a crash of this process or of the owner, and for every caller.
 */
export async function withdrawInput(
  { runId, store, life, send }: WithdrawingRun,
  inputId: string,
  signal: CancelSignal | undefined,
): Promise<boolean> {
  life?.check();
  const before = await fateOf(store, runId, inputId);
  if (before === "unknown")
    throw new Fault(
      "not_found",
      `run ${runId} has received no input ${JSON.stringify(inputId)}; queuedInput() lists the inputs that can be withdrawn`,
      { details: { runId, inputId } },
    );
  if (before !== "queued") return before === "withdrawn";
  const command = await send({ type: "withdraw_input", inputId });
  await consumed({ runId, store, life }, command, signal);
  return (await fateOf(store, runId, inputId)) === "withdrawn";
}

async function fateOf(
  store: RunStore,
  runId: RunId,
  inputId: string,
): Promise<"withdrawn" | "queued" | "taken" | "unknown"> {
  const isMail = (await store.mailbox.read(runId)).some((mail) => isInput(mail, inputId));
  const { fates } = await readFates(store, runId);
  return fates.get(inputId) ?? (isMail ? "queued" : "unknown");
}

function isInput({ id, body }: Mail, inputId: string): boolean {
  return id === inputId && (body.type === "steer" || body.type === "follow_up");
}

/** Resolves when the owner of the run has consumed a command, or the run was deleted. */
async function consumed(
  { runId, store, life }: Pick<WithdrawingRun, "runId" | "store" | "life">,
  command: string,
  signal: CancelSignal | undefined,
): Promise<void> {
  const isWaiting = async (): Promise<boolean> =>
    (await store.mailbox.read(runId)).some(({ id }) => id === command);
  while (await isWaiting()) {
    const changed = Promise.withResolvers<void>();
    const wake = (): void => changed.resolve();
    const unsubscribe = store.onChange(wake);
    const guest: Guest = { lifeEnded: wake };
    life?.join(guest);
    signal?.addEventListener("abort", wake);
    try {
      // Read again: the mailbox may have changed before the subscription.
      if (signal?.aborted !== true && life?.fault === undefined && (await isWaiting())) await changed.promise;
    } finally {
      signal?.removeEventListener("abort", wake);
      unsubscribe();
      life?.leave(guest);
    }
    life?.check();
    if (signal?.aborted === true)
      throw new CancellationError(
        `the wait for the answer to the withdrawal of an input of ${runId} was ended`,
      );
  }
}
