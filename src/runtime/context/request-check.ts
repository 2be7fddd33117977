import { describeValue, Fault, readProperty } from "../../kernel/index.ts";

/**
 * What is wrong with the request of `ctx.llm`. `undefined` if it has a transcript. The form is compared and not the class,
 * because an agent may come from another copy of this package.
 */
export function requestProblem(request: unknown): Fault | undefined {
  const transcript = readProperty(request, "transcript");
  if (typeof readProperty(transcript, "append") === "function") return undefined;
  return new Fault(
    "invalid_argument",
    `invalid transcript ${describeValue(transcript)} of ctx.llm(): expected a Transcript; use ctx.llm({ transcript: Transcript.of(messages) })`,
  );
}
