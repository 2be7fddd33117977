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
  reply: ArchitectureCase["reply"],
  role: string,
  body: JsonValue,
): ReturnType<typeof modelAnswer> {
  const messages = body as unknown as readonly ChatMessage[];
  const last = messages.at(-1);
  const call: ModelCall = { role, messages, last: last === undefined ? "" : messageText(last) };
  return modelAnswer(messages.length, reply(call));
}

/** External services in this process. A call is answered at once, unless `hold` delays it. */
export class InProcessServices implements ExternalServices {
  readonly calls: ServedCall[] = [];
  /** Name of the worker process that makes the following calls. */
  caller = "";
  /** Awaited before each answer, with the number of calls so far. */
  hold: (calls: number) => Promise<void> = async () => {};
  readonly #reply: ArchitectureCase["reply"];

  constructor(reply: ArchitectureCase["reply"]) {
    this.#reply = reply;
  }

  /** Number of model calls so far. */
  get modelCalls(): number {
    return this.calls.filter(({ name }) => name === "model").length;
  }

  model(role: string): Model {
    const { caller } = this;
    const generate: Model["generate"] = async ({ messages }) => {
      const body = messages as unknown as JsonValue;
      const { body: answer, bill = { tokens: 0, usd: 0 } } = answerCall(this.#reply, role, body);
      const receipt = this.#record({
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
        const receipt = this.#record({ name, key, body, caller, billed: { tokens: 0, usd: 0 } });
        await this.hold(this.calls.length);
        return {
          output: { type: "json", value: { receipt, answer: toolAnswer(name, body).body } },
          isError: false,
        };
      },
    };
  }

  #record(call: Omit<ServedCall, "receipt">): string {
    const { name, key, body } = call;
    const receipt = digest({ name, key, body });
    this.calls.push({ ...call, receipt });
    return receipt;
  }
}

function digest(value: JsonValue): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 20);
}
