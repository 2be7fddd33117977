import type { RequestPermissionRequest, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import { answerIfLive, Fault, visibleText, type RunHandle } from "../../../kernel/index.ts";
import { decisionOf, permissionRequest, type ShownQuestion } from "./permission.ts";

export interface QuestionOptions {
  readonly sessionId: string;
  readonly root: string;
  /** Asks the user of the editor. `signal` withdraws the question. */
  readonly ask: (
    request: RequestPermissionRequest,
    signal: AbortSignal,
  ) => Promise<RequestPermissionResponse>;
  /** Shows a text to the user. */
  readonly say: (text: string) => Promise<void>;
  /** The user has cancelled the prompt. */
  readonly onCancel: () => void;
  /** Writes a line for the person who operates this process. */
  readonly log: (line: string) => void;
  readonly isClosed: () => boolean;
}

/**
 * The questions of a run that its user is being asked. A question that was answered elsewhere, for example with
 * `reeve approve`, is withdrawn. Only the first answer is used.
 */
export class OpenQuestions {
  readonly #options: QuestionOptions;
  /** The questions that are being asked, by `questionId`. */
  readonly #open = new Map<string, AbortController>();

  constructor(options: QuestionOptions) {
    this.#options = options;
  }

  /** Asks a question, unless it is already open. Does not wait for the answer. */
  ask(run: RunHandle, question: ShownQuestion): void {
    const { questionId } = question;
    if (this.#open.has(questionId)) return;
    const controller = new AbortController();
    this.#open.set(questionId, controller);
    const { isClosed, say, log } = this.#options;
    this.#decide(run, question, controller.signal)
      .catch(async (error: unknown) => {
        if (!isClosed() && !controller.signal.aborted)
          await say(`\n\n[The answer was not stored: ${Fault.from(error).message}]`);
      })
      .catch((error: unknown) => log(Fault.from(error).message));
  }

  /** The question was answered. */
  settle(questionId: string): void {
    this.#open.get(questionId)?.abort();
  }

  /**
   * Withdraws all questions in the editor. In the run they stay open, and they are asked again when the run is
   * shown again.
   */
  withdraw(): void {
    for (const controller of this.#open.values()) controller.abort();
    this.#open.clear();
  }

  async #decide(run: RunHandle, question: ShownQuestion, signal: AbortSignal): Promise<void> {
    const { sessionId, root, ask, say, onCancel, isClosed } = this.#options;
    const { request } = question;
    const { approvalId } = request;
    const asked = permissionRequest(question, { sessionId, root });
    if (asked === undefined) {
      await say(
        `\n\n[${visibleText(request.reason)} Answer with: reeve approve ${run.runId} --id ${approvalId}]`,
      );
      return;
    }
    let response: RequestPermissionResponse;
    try {
      response = await ask(asked, signal);
    } catch (error) {
      if (signal.aborted || isClosed()) return;
      const reason = `the editor could not ask its user: ${Fault.from(error).message}`;
      return await answerIfLive(run, approvalId, { decision: "denied", reason });
    }
    if (signal.aborted) return;
    const decision = decisionOf(response, request);
    if (decision === undefined) onCancel();
    else await answerIfLive(run, approvalId, decision);
  }
}
