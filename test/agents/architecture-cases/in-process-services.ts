import { createHash } from "node:crypto";
import {
  canonicalJson,
  messageText,
  type ChatMessage,
  type JsonValue,
  type Model,
  type ModelResponse,
  type Tool,
} from "../../../src/kernel/index.ts";
import type { ServedCall } from "../../../src/testing/index.ts";
import { modelAnswer, outputLimit, toolAnswer } from "../../crash/workload.ts";
import type { ModelCall, ExternalServices, ArchitectureCase } from "./architecture-case.ts";

/** Computes the response of the model that plays a role. */
export function answerCall(
  says: ArchitectureCase["reply"],
  role: string,
  body: JsonValue,
): ReturnType<typeof modelAnswer> {
  const messages = body as unknown as readonly ChatMessage[];
  const last = messages.at(-1);
  const asked: ModelCall = { role, messages, last: last === undefined ? "" : messageText(last) };
  return modelAnswer(messages.length, says(asked));
}

/** External services in this process. A call is answered at once, unless `hold` delays it. */
export class InProcessServices implements ExternalServices {
  readonly calls: ServedCall[] = [];
  /** Name of the worker process that makes the following calls. */
  caller = "";
  /** Awaited before each answer, with the number of calls so far. */
  hold: (calls: number) => Promise<void> = async () => {};
  readonly #says: ArchitectureCase["reply"];

  constructor(says: ArchitectureCase["reply"]) {
    this.#says = says;
  }

  /** Number of model calls so far. */
  get asked(): number {
    return this.calls.filter(({ name }) => name === "model").length;
  }

  model(role: string): Model {
    const { caller } = this;
    const generate: Model["generate"] = async ({ messages }) => {
      const body = messages as unknown as JsonValue;
      const { body: answer, bill = { tokens: 0, usd: 0 } } = answerCall(this.#says, role, body);
      const receipt = this.#note({
        name: "model",
        key: `${role} ${digest(body)}`,
        body,
        caller,
        billed: bill,
      });
      await this.hold(this.calls.length);
      const response = answer as unknown as ModelResponse;
      return { ...response, message: { ...response.message, providerMetadata: { served: { receipt } } } };
    };
    return {
      provider: "served",
      modelId: role,
      maxOutputTokens: outputLimit,
      generate,
      async *stream(request, options) {
        yield { type: "finish", ...(await generate(request, options)) };
      },
    };
  }

  tool(name: string): Tool {
    const { caller } = this;
    return {
      name,
      description: `${name}, played by the test`,
      inputSchema: { type: "object" },
      risk: "safe",
      destructive: false,
      edits: false,
      concurrency: "parallel",
      timeoutMs: null,
      suspends: false,
      needsApproval: () => false,
      parse: (input) => input,
      execute: async (input, { idempotencyKey: key }) => {
        const body = input as JsonValue;
        const receipt = this.#note({ name, key, body, caller, billed: { tokens: 0, usd: 0 } });
        await this.hold(this.calls.length);
        return {
          output: { type: "json", value: { receipt, answer: toolAnswer(name, body).body } },
          isError: false,
        };
      },
    };
  }

  #note(call: Omit<ServedCall, "receipt">): string {
    const { name, key, body } = call;
    const receipt = digest({ name, key, body });
    this.calls.push({ ...call, receipt });
    return receipt;
  }
}

function digest(value: JsonValue): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 20);
}
