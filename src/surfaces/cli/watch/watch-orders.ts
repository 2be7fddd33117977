import { Fault, rootTaskId, visibleLine, type ApprovalDecision, type TaskId } from "../../../kernel/index.ts";
import type { TaskView } from "../../view/run-view.ts";
import { addedWords, amountWords, isStoppedAtLimit } from "../../view/top-up-offer.ts";
import { amountOf, amountExamples } from "../chat/front/top-up-amount.ts";
import { RequestError, type RouteClient } from "../../client/route-client.ts";
import type { AskOptions, PickOptions } from "../chat/screen/screen.ts";
import type { Run, TopUpLeft } from "./run-feed.ts";
import type { RunQuestion } from "./watch-items.ts";

/** How orders ask the person. */
export interface OrderDesk {
  readonly pick: <Value>(options: PickOptions<Value>) => Promise<Value | undefined>;
  readonly ask: (title: string, options?: AskOptions) => Promise<string | undefined>;
}

/** A run, and one of its agents, to which an order is sent. */
export interface OrderTarget {
  readonly run: Run;
  readonly task?: Pick<TaskView, "taskId" | "agentId" | "endedAt" | "children">;
}

/**
 * The orders that a person can give at the terminal. Each order resolves to a description of its result, or to
 * `undefined` if the person cancelled it.
 */
export class WatchOrders {
  readonly #client: RouteClient;
  readonly #desk: OrderDesk;

  constructor(client: RouteClient, desk: OrderDesk) {
    this.#client = client;
    this.#desk = desk;
  }

  /** Raises the budget of an agent. */
  async topUp({ run, task }: OrderTarget): Promise<string | undefined> {
    const { runId } = run;
    const params = { runId };
    if (run.endedAt !== null && !isStoppedAtLimit(run.status))
      throw new Fault(
        "invalid_argument",
        `${runId} has ended (${run.status}); a top-up continues only a run that stopped at its budget or deadline`,
      );
    const left = await this.#client.get("/api/runs/{runId}/top-up", { params });
    const { lacks } = left;
    // A stopped run continues only if the agent that lacks something gets it.
    const taskId = (lacks?.taskId as TaskId | undefined) ?? task?.taskId ?? rootTaskId;
    const name =
      taskId === task?.taskId ? visibleLine(task.agentId) : taskId === rootTaskId ? "the run" : taskId;
    const offer = lacks === null || lacks.amount <= 0 ? "" : amountWords(lacks.name, lacks.amount);
    const text = await this.#desk.ask(
      `Add to the budget of ${name}, such as ${amountExamples}.${leftWords(left)}`,
      { initial: offer },
    );
    if (text === undefined || text.trim() === "") return undefined;
    const add = amountOf(text);
    await this.#client.post("/api/runs/{runId}/top-up", { params, body: { ...add, taskId } });
    return `Added ${addedWords(add)} to ${name}.`;
  }

  /** Pauses a run, or lets it continue. */
  async pauseOrResume({ run }: OrderTarget): Promise<string | undefined> {
    const params = { runId: run.runId };
    if (run.endedAt === null && run.status !== "paused") {
      await this.#client.post("/api/runs/{runId}/pause", { params });
      return `The run pauses; calls in flight finish first.`;
    }
    if (run.endedAt !== null) {
      if (run.status === "completed")
        throw new Fault(
          "invalid_argument",
          `${run.runId} is done; only a run that did not complete can continue`,
        );
      const isWanted = await this.#desk.pick({
        title: "The run has ended. Continue it where it stopped?",
        choices: [
          { value: true, label: "Continue it", key: "y" },
          { value: false, label: "No", key: "n" },
        ],
      });
      if (isWanted !== true) return undefined;
    }
    await this.#client.post("/api/runs/{runId}/resume", { params });
    return `The run continues.`;
  }

  /** Sends a text to an agent, which reads it before its next turn. */
  async steer({ run, task }: OrderTarget): Promise<string | undefined> {
    const name = task === undefined ? visibleLine(run.agentId) : visibleLine(task.agentId);
    if (run.endedAt !== null || (task !== undefined && task.endedAt !== null))
      throw new Fault(
        "invalid_argument",
        `${name} has ended and reads nothing; start a new run with reeve run`,
      );
    const text = await this.#desk.ask(`Tell ${name}, which reads it before its next turn:`);
    if (text === undefined || text.trim() === "") return undefined;
    const body = { input: text, ...(task !== undefined && { taskId: task.taskId }) };
    await this.#client.post("/api/runs/{runId}/steer", { params: { runId: run.runId }, body });
    return `Sent to ${name}.`;
  }

  /** Cancels a run, or one of its agents together with the agent's reports. */
  async cancel({ run, task }: OrderTarget): Promise<string | undefined> {
    const { runId } = run;
    if (run.endedAt !== null)
      throw new Fault("invalid_argument", `${runId} has ended already (${run.status})`);
    const canChoose = task !== undefined && task.taskId !== rootTaskId && task.endedAt === null;
    const name = task === undefined ? "" : visibleLine(task.agentId);
    const wanted = await this.#desk.pick<"task" | "run" | "no">({
      title: "What should be cancelled?",
      choices: [
        { value: "no", label: "Nothing", key: "n" },
        ...(canChoose
          ? ([
              {
                value: "task",
                label: task.children === 0 ? `Only ${name}` : `Only ${name}, with the agents below it`,
                key: "a",
              },
            ] as const)
          : []),
        { value: "run", label: "The whole run", key: "r" },
      ],
    });
    if (wanted === undefined || wanted === "no") return undefined;
    const reason = await this.#desk.ask("Why? Agents and the log get the reason. Enter alone gives none.");
    if (reason === undefined) return undefined;
    const body = {
      ...(reason.trim() !== "" && { reason: reason.trim() }),
      ...(wanted === "task" && task !== undefined && { taskId: task.taskId }),
    };
    await this.#client.post("/api/runs/{runId}/cancel", { params: { runId }, body });
    return `${wanted === "task" ? name : "The run"} is being cancelled.`;
  }

  /** Answers a question of a run. Only the first answer is used. */
  async decide({ runId, question }: RunQuestion, decision: ApprovalDecision): Promise<string> {
    const { approvalId } = question.request;
    await this.#client.post("/api/runs/{runId}/decide", {
      params: { runId },
      body: { approvalId, ...decision },
    });
    const verb = decision.decision === "denied" ? "Denied" : "Answered";
    return `${verb}: ${visibleLine(question.agentId)}.`;
  }
}

function leftWords({ maxCostUsd }: TopUpLeft): string {
  return maxCostUsd === null ? "" : ` You may add ${amountWords("maxCostUsd", maxCostUsd)}.`;
}

/** Describes an error of an order. If the connection was lost, it is unknown whether the order arrived. */
export function orderProblem(error: unknown): string {
  if (error instanceof RequestError && error.code === "offline")
    return `${visibleLine(error.message)}. It may have the order already: look at the run before you repeat it.`;
  return visibleLine(Fault.from(error).message);
}
