import { Agent } from "../../../src/entries/index.ts";
import type { SimulationClient } from "../../../src/entries/testing.ts";
import { Fault, formatRunId, type ChatMessage, type SessionEntry } from "../../../src/kernel/index.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { workload } from "../workload.ts";

interface World {
  /** The prompts that the model saw when it was asked for an answer to a prompt, for each call. */
  readonly seen: Map<string, string[]>;
  readonly wrong: string[];
}

/** The largest number of changes and prompts of a seed. */
const mostSteps = 9;

/** A session as its model predicts it: the prompts on the path, and the compactions between them. */
interface Predicted {
  readonly id: string;
  prompts: string[];
  /** After how many prompts each compaction stands, and how many prompts it hides. */
  compactions: readonly { readonly after: number; readonly hidden: number }[];
}

/**
 * Prompts in sessions that are forked, moved back and compacted. The model of the workload knows which prompts the agent must see, and
 * that the entries of a session are a tree.
 */
export const sessions = workload<World>(
  "sessions",
  (seed, steps = mostSteps) => {
    let state = seed;
    const below = (limit: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % limit;
    };
    const plan = Array.from({ length: 4 + below(6) }, () => [below(6), below(8)] as const).slice(0, steps);
    const expected = new Map<string, readonly string[]>();
    return {
      world: () => ({ seen: new Map(), wrong: [] }),
      runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000, unknownPrice: "ignore" },
      agents: ({ model, world }) => {
        const clerk = model(({ messages }) => {
          const prompts = promptsIn(messages);
          const last = prompts.at(-1) ?? "";
          world.seen.set(last, [...(world.seen.get(last) ?? []), prompts.join(" ")]);
          return `answer to ${last}`;
        });
        return [new Agent({ name: "clerk", model: clerk })];
      },
      load: async (client) => {
        const { runtime, world, sleep } = client;
        const all: Predicted[] = [{ id: "first", prompts: [], compactions: [] }];
        for (const [index, [action, choice]] of plan.entries()) {
          const session = all[choice % all.length] as Predicted;
          const { id, prompts } = session;
          const change = async <Value>(make: () => Promise<Value>): Promise<Value> => {
            for (;;)
              try {
                return await make();
              } catch (error) {
                // A run of the session is about to end.
                if (Fault.from(error).code !== "agent_busy") throw error;
                await sleep(100);
              }
          };
          const hidden = session.compactions.at(-1)?.hidden ?? 0;
          const path = prompts.length === 0 ? [] : await runtime.sessions.path(id);
          const place = choice % Math.max(1, prompts.length);
          if (prompts.length > hidden && action === 0) {
            const copy = await change(() => runtime.sessions.fork(id));
            all.push({ ...session, id: copy });
          } else if (prompts.length > hidden && action === 1 && place >= hidden) {
            // After the answer to an earlier prompt.
            const answer = answerTo(path, prompts[place] as string);
            await change(() => runtime.sessions.move(id, answer));
            session.prompts = prompts.slice(0, place + 1);
            session.compactions = session.compactions.filter(({ after }) => after <= place);
          } else if (prompts.length > hidden && action === 2 && place >= hidden) {
            const kept = entryOf(path, prompts[place] as string);
            const compaction = { summary: "The beginning.", firstKeptEntryId: kept };
            await change(() => runtime.sessions.compact(id, compaction));
            session.compactions = [...session.compactions, { after: prompts.length, hidden: place }];
          } else {
            const prompt = `prompt-${index}`;
            session.prompts = [...prompts, prompt];
            expected.set(prompt, session.prompts.slice(hidden));
            await ask(client, id, prompt);
          }
        }
        for (const { id, prompts } of all) {
          if (prompts.length === 0) continue;
          const path = await runtime.sessions.path(id);
          const found = promptsIn(path.flatMap((entry) => (entry.type === "message" ? [entry.message] : [])));
          if (found.join(" ") !== prompts.join(" "))
            world.wrong.push(
              `${id} has the prompts ${found.join(" ")}, and in its model ${prompts.join(" ")}`,
            );
          world.wrong.push(...treeOf((await runtime.sessions.entries(id, { limit: 200 })).entries));
          for (const prompt of prompts) answerTo(path, prompt);
        }
      },
      check: ({ runs, world }) => {
        const wrong = [...world.wrong];
        for (const { run } of runs)
          if (run.status !== "completed") wrong.push(`${run.runId} is ${run.status}`);
        for (const [prompt, all] of world.seen) {
          const right = expected.get(prompt)?.join(" ");
          for (const seen of all)
            if (seen !== right) wrong.push(`for ${prompt} the model saw ${seen}, and not ${right}`);
        }
        return wrong;
      },
    };
  },
  () => mostSteps,
);

/** Asks the agent, and resumes the run until it completes. */
async function ask(
  { submit, sleep }: SimulationClient<World>,
  sessionId: string,
  prompt: string,
): Promise<void> {
  const options = { sessionId, runId: formatRunId(prompt) };
  // Submitted twice, as by a client that has got no answer.
  const [run] = await Promise.all([submit("clerk", prompt, options), submit("clerk", prompt, options)]);
  for (let tries = 0; tries < 50; tries++) {
    const { status } = await run.result();
    if (status === "completed") return;
    const { endedAt } = await run.summary();
    await run.resume();
    while ((await run.summary()).endedAt === endedAt) await sleep(100);
  }
}

function promptsIn(messages: readonly ChatMessage[]): string[] {
  return messages.flatMap((message) => {
    const text = message.role === "user" ? messageText(message) : "";
    return /^prompt-\d+$/u.test(text) ? [text] : [];
  });
}

function entryOf(path: readonly SessionEntry[], prompt: string): string {
  const found = path.filter(
    (entry) =>
      entry.type === "message" && entry.message.role === "user" && messageText(entry.message) === prompt,
  );
  const [entry] = found;
  if (entry === undefined || found.length !== 1)
    throw new Error(`${prompt} is ${found.length} times on the path`);
  return entry.id;
}

function answerTo(path: readonly SessionEntry[], prompt: string): string {
  const found = path.filter(
    (entry) =>
      entry.type === "message" &&
      entry.message.role === "assistant" &&
      messageText(entry.message) === `answer to ${prompt}`,
  );
  const [entry] = found;
  if (entry === undefined || found.length !== 1)
    throw new Error(`${prompt} has ${found.length} answers on the path`);
  return entry.id;
}

/** Says which entries have no place in a tree: each one has an id of its own, and follows an earlier one or none. */
function treeOf(entries: readonly SessionEntry[]): readonly string[] {
  const wrong: string[] = [];
  const known = new Set<string>();
  for (const { id, parentId } of entries) {
    if (known.has(id)) wrong.push(`entry ${id} is stored twice`);
    if (parentId !== null && !known.has(parentId))
      wrong.push(`entry ${id} follows ${parentId}, which is not before it`);
    known.add(id);
  }
  return wrong;
}
