import { messageText, type AssistantMessage, type JsonValue } from "../../kernel/index.ts";

/** The JSON value a message is: its whole text, its last piece of text, or what stands in its only code fence. */
export function readJsonAnswer(message: AssistantMessage): JsonValue | undefined {
  const whole = messageText(message);
  const last = message.content.findLast((part) => part.type === "text");
  const fences = [...whole.matchAll(/```(?:json)?\s*\n([\s\S]*?)\n\s*```/g)];
  const texts = [whole, last?.text ?? "", ...(fences.length === 1 ? [fences[0]?.[1] ?? ""] : [])];
  for (const text of texts) {
    const value = readJson(text);
    if (value !== undefined) return value;
  }
  return undefined;
}

function readJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
