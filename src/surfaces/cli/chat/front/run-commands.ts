import {
  describeValue,
  Fault,
  rootTaskId,
  thinkingLevels,
  visibleLine,
  type ThinkingLevel,
} from "../../../../kernel/index.ts";
import { counted, dollars, duration } from "../../terminal/format.ts";
import type { ChatCommand, Desk } from "./desk.ts";
import { addedWords } from "../../../view/top-up-offer.ts";
import { costWords } from "./status-line.ts";
import { amountExamples, amountOf } from "./top-up-amount.ts";

/** Commands that set the agent's model and thinking, and its limits. */
export const runCommands: readonly ChatCommand[] = [
  {
    name: "model",
    takes: "[PROVIDER/ID]",
    about: "choose the model from the next turn on",
    run: chooseModel,
  },
  {
    name: "thinking",
    takes: `[${thinkingLevels.join("|")}]`,
    about: "choose how much the model reasons before it answers",
    run: chooseThinking,
  },
  { name: "agent", takes: "[NAME]", about: "start a conversation with another agent", run: chooseAgent },
  {
    name: "cost",
    takes: "",
    about: "show what this conversation has cost, by agent and model",
    run: showCost,
  },
  {
    name: "budget",
    takes: "",
    about: "show the limits of the last run, and what it has used",
    run: showBudget,
  },
  {
    name: "continue",
    takes: "",
    about: "continue the last run after a pause or a failure; no answered call is paid again",
    run: continueRun,
  },
  {
    name: "top-up",
    takes: "USD | N turns | N tokens | N s",
    about: "add to a limit of the last run; one that stopped there continues",
    run: topUp,
  },
];

async function chooseModel({ client, conversation, pick, say }: Desk, wanted: string): Promise<void> {
  let model: string | undefined = wanted;
  const params = { name: conversation.agent };
  const { models } = await client.get("/api/agents/{name}/options", { params });
  if (wanted === "") {
    if (models.length === 0) return say("The agent names no models; use /model provider/id.");
    model = await pick({
      title: "Which model?",
      filters: true,
      choices: models.map((name) => ({ value: name, label: visibleLine(name) })),
    });
  }
  if (model === undefined) return;
  if (!/^[^/]+\/./u.test(model))
    throw new Fault(
      "invalid_argument",
      `invalid model ${describeValue(model)}: expected provider/id, such as anthropic/claude-sonnet-5; /model alone lists the models`,
    );
  await conversation.change({ model });
  const isListed = models.length === 0 || models.includes(model);
  const doubt = isListed
    ? ""
    : " It is not among those that /model lists; a turn fails if its provider does not have it.";
  say(`The model is ${model} from the next turn on.${doubt}`);
}

function isLevel(text: string): text is ThinkingLevel {
  return (thinkingLevels as readonly string[]).includes(text);
}

async function chooseThinking({ conversation, pick, say }: Desk, wanted: string): Promise<void> {
  if (wanted !== "" && !isLevel(wanted))
    throw new Fault(
      "invalid_argument",
      `invalid level ${wanted}: expected one of ${thinkingLevels.join(", ")}`,
    );
  const level =
    wanted === ""
      ? await pick({
          title: "How much reasoning?",
          choices: thinkingLevels.map((value) => ({ value, label: value })),
        })
      : wanted;
  if (level === undefined) return;
  await conversation.change({ thinkingLevel: level });
  say(`The thinking level is ${level} from the next turn on.`);
}

async function chooseAgent({ client, conversation, pick }: Desk, wanted: string): Promise<void> {
  if (wanted !== "") {
    const { name } = await client.get("/api/agents/{name}", { params: { name: wanted } });
    return conversation.startNew(name);
  }
  const { agents } = await client.get("/api/agents");
  const name = await pick({
    title: "Which agent? It starts a new conversation.",
    filters: true,
    choices: agents
      .filter(({ kind }) => kind === "agent")
      .map((each) => ({
        value: each.name,
        label: visibleLine(each.name),
        description: visibleLine([each.model, each.description].filter((text) => text !== null).join(" · ")),
      })),
  });
  if (name !== undefined) conversation.startNew(name);
}

async function showCost({ client, conversation, say }: Desk): Promise<void> {
  const { view } = conversation.model;
  const lines =
    view === undefined
      ? []
      : [...view.money].map(
          ({ agentId, model: name, calls, usage }) =>
            `${agentId}  ${name}  ${calls} calls  ${counted(usage.inputTokens + usage.outputTokens)} tokens  ${dollars(usage.costUsd)}`,
        );
  if (conversation.sessionId !== undefined) {
    const query = { sessionId: conversation.sessionId };
    const { count, isMore } = await client.get("/api/run-count", { query });
    const words = isMore ? `more than ${counted(count)}` : counted(count);
    lines.push(`${words} runs of this conversation: ${costWords(conversation)}`);
  }
  say(lines.length === 0 ? "Nothing was paid yet." : lines.join("\n"));
}

async function showBudget({ conversation, say }: Desk): Promise<void> {
  const root = conversation.model.view?.tasks.get(rootTaskId);
  if (root === undefined || root.budget === null) return say("No run of this conversation was followed yet.");
  const { maxCostUsd, maxTokens, maxTurns, deadlineMs } = root.budget;
  say(
    [
      `cost    ${dollars(root.total.costUsd)} of ${maxCostUsd === null ? "any amount" : dollars(maxCostUsd)}`,
      `tokens  ${counted(root.total.tokens)} of ${maxTokens === null ? "any number" : counted(maxTokens)}`,
      `turns   at most ${maxTurns === null ? "any number" : counted(maxTurns)}`,
      `time    at most ${deadlineMs === null ? "any time" : duration(deadlineMs)}`,
    ].join("\n"),
  );
}

async function continueRun({ client, conversation }: Desk): Promise<void> {
  const { runId } = conversation.model;
  if (runId === undefined) throw new Fault("not_found", "no run of this conversation was followed yet");
  await client.post("/api/runs/{runId}/resume", { params: { runId }, body: {} });
  if (!conversation.model.isWorking) await conversation.refollow();
}

async function topUp({ client, conversation, ask, say }: Desk, text: string): Promise<void> {
  const { runId } = conversation.model;
  if (runId === undefined) throw new Fault("not_found", "no run of this conversation was followed yet");
  const wanted = text === "" ? await ask(`How much is added, such as ${amountExamples}?`) : text;
  if (wanted === undefined) return;
  const add = amountOf(wanted);
  await client.post("/api/runs/{runId}/top-up", { params: { runId }, body: add });
  say(`Added ${addedWords(add)} to ${runId}`);
  const { isWorking, view } = conversation.model;
  if (isWorking) return;
  // A run that has ended for another reason than a limit does not continue.
  if (view?.status === "budget_exhausted" || view?.status === "deadline_exceeded")
    return conversation.refollow();
  say("The run has ended for another reason and does not continue.");
}
