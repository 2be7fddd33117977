import { rootTaskId, visibleLine } from "../../../../kernel/index.ts";
import { dollars, duration } from "../../terminal/format.ts";
import type { Conversation } from "../client/conversation.ts";
import { inputText } from "../model/chat-words.ts";
import type { Part } from "../screen/screen.ts";
import type { Theme } from "../screen/theme.ts";

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** Returns the line below the composer: agent, model, context, costs, seats and number of active children. */
export function statusLine(conversation: Conversation, model: string | undefined): string {
  const { usage, agent } = conversation;
  const view = conversation.model.isWorking ? conversation.model.view : undefined;
  const root = view?.tasks.get(rootTaskId);
  const limit = root?.budget?.maxCostUsd ?? null;
  const working =
    view === undefined
      ? 0
      : [...view.tasks].filter(({ taskId, endedAt }) => taskId !== rootTaskId && endedAt === null).length;
  const share = usage?.share ?? null;
  return [
    visibleLine(agent),
    visibleLine(root?.model ?? usage?.model ?? model ?? "no model yet"),
    ...(share === null ? [] : [`context ${(share * 100).toFixed(0)} %`]),
    `${costWords(conversation)}${limit === null ? "" : ` of ${dollars(limit)}`}`,
    ...(view === undefined || view.maxSeats === null ? [] : [`seats ${view.seats} of ${view.maxSeats}`]),
    ...(working === 0 ? [] : [`${working} ${working === 1 ? "agent works" : "agents work"} below`]),
  ].join(" · ");
}

/** Describes the cost of the runs of a conversation, or the minimum cost while older runs are still being read. */
export function costWords({
  costUsd,
  isCostPartial,
}: Pick<Conversation, "costUsd" | "isCostPartial">): string {
  return `${isCostPartial && costUsd !== null ? "at least " : ""}${dollars(costUsd)}`;
}

/** Returns the lines above the composer: the current activity, and the inputs that wait in the queue. */
export function activityParts(conversation: Conversation, { paint }: Theme, now: number): readonly Part[] {
  const { model, queue, lostAt } = conversation;
  const queued: readonly Part[] = queue.map(({ kind, input }) => {
    const when = kind === "steer" ? "next turn" : "at the end";
    return { kind: "line", text: paint("hold", `  ↳ ${when}: ${visibleLine(inputText(input))}`) };
  });
  if (lostAt !== undefined)
    return [
      {
        kind: "line",
        text: paint(
          "bad",
          `The server does not answer since ${duration(now - lostAt)}; trying again. The run continues without this chat.`,
        ),
      },
      ...queued,
    ];
  if (!model.isWorking) return [];
  const view = model.view;
  const root = view?.tasks.get(rootTaskId);
  const call = root?.openCalls === 0 ? undefined : root?.lastCall;
  const doing =
    model.questions.length > 0
      ? "waits for you"
      : view === undefined || view.seq < 0
        ? "waits for a worker"
        : view.status === "paused"
          ? "is paused"
          : call === null || call === undefined
            ? view.status === "waiting"
              ? `waits for ${root?.waitsFor.join(", ") ?? "an event"}`
              : "works"
            : call.kind === "tool"
              ? `calls ${visibleLine(call.name)}`
              : visibleLine(call.name);
  const since = view === undefined || view.startedAt === 0 ? "" : ` ${duration(now - view.startedAt)}`;
  const frame = frames[Math.floor(now / 100) % frames.length] ?? "";
  const hints =
    model.questions.length > 0
      ? "Esc answers later"
      : `Esc stops · ${queue.length > 0 ? "Alt+Up takes back" : "Enter steers · Alt+Enter queues"}`;
  return [
    { kind: "line", text: `${paint("accent", frame)} ${doing}${paint("dim", `${since} · ${hints}`)}` },
    ...queued,
  ];
}
