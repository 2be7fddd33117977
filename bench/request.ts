import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { toModel, type AiSdkModel } from "reeve";
import type { ChatMessage } from "reeve/kernel";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

const lengths = [10, 100, 1_000] as const;
const requests = 40;
const rounds = 7;

/** The processor time that builds the body of a request, by the length of the conversation, on three wires. */
export async function* rows(): AsyncIterable<Row> {
  let built = 0;
  const fetch = (): Promise<never> => {
    built++;
    return Promise.reject(new Error("the bench sends nothing"));
  };
  const options = { apiKey: "unused", fetch };
  const wires: Readonly<Record<string, AiSdkModel>> = {
    "Anthropic messages": createAnthropic(options)("claude-sonnet-4-5"),
    "OpenAI chat": createOpenAI(options).chat("gpt-5"),
    "OpenAI responses": createOpenAI(options)("gpt-5"),
  };
  for (const [wire, sdk] of Object.entries(wires)) {
    const model = toModel(sdk);
    const taken = new Map<number, number[]>(lengths.map((turns) => [turns, []]));
    for (let round = 0; round <= rounds; round++)
      for (const turns of lengths) {
        const messages = conversation(turns);
        const ms = await cpuMs(async () => {
          for (let request = 0; request < requests; request++)
            await model.generate({ messages }, {}).catch(() => undefined);
        });
        // The first round compiles the code.
        if (round > 0) taken.get(turns)?.push(ms / requests);
      }
    if (built !== requests * lengths.length * (rounds + 1))
      throw new Error(`${wire}: ${built} bodies were built`);
    built = 0;
    const ms = (turns: number): number => median(taken.get(turns) ?? []);
    for (const turns of lengths.slice(1))
      yield {
        name: `${wire}: body of ${turns.toLocaleString("en")} turns, against ${lengths[0]} turns`,
        value: ms(turns),
        unit: "ms",
        against: ms(lengths[0]),
        goal: turns === 1_000 ? { atMost: 2 } : null,
      };
  }
}

/** A conversation of one tool call per turn, with about 600 bytes of body each. */
function conversation(turns: number): readonly ChatMessage[] {
  const messages: ChatMessage[] = [
    { role: "system", content: "You are a clerk." },
    { role: "user", content: [{ type: "text", text: "Read the files." }] },
  ];
  for (let turn = 0; turn < turns; turn++) {
    const callId = `call-${turn}`;
    messages.push(
      {
        role: "assistant",
        content: [
          { type: "text", text: `I read file ${turn}.` },
          { type: "tool_call", callId, toolName: "read", input: { path: `files/${turn}.txt` } },
        ],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool_result",
            callId,
            toolName: "read",
            output: { type: "text", text: "x".repeat(400) },
            isError: false,
          },
        ],
      },
    );
  }
  return messages;
}
