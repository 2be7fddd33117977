import type { EventDraft, Model } from "../../kernel/index.ts";
import { modelName } from "./model-name.ts";
import type { TaskRunner } from "../task/task-runner.ts";

interface Begun {
  readonly role: string;
  readonly model: Model | undefined;
  readonly start: EventDraft;
}

/** What is told when a model is asked: one and the same for every call in a role. */
export class MessageStarts {
  readonly #runner: TaskRunner;
  #last: Begun | undefined;

  constructor(runner: TaskRunner) {
    this.#runner = runner;
  }

  of(role: string, model: Model | undefined): EventDraft {
    if (this.#last?.role === role && this.#last.model === model) return this.#last.start;
    const named = model && { model: modelName(this.#runner.agentId, model).name };
    const modelRole = role === "main" ? undefined : { modelRole: role };
    const data = Object.freeze({ role: "assistant", attempt: 1, ...named, ...modelRole } as const);
    const start: EventDraft = { type: "message_start", data };
    this.#last = { role, model, start };
    return start;
  }
}
