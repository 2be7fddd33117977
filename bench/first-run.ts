/**
 * A whole first run in a new process: imports the package, makes an agent with a tool and a scripted model, and invokes it. With the
 * argument `call`, the model calls the tool first, which loads ajv and compiles the tool's schema.
 */
export const firstRun = `
  const { Agent, tool } = await import("reeve");
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const answer = { message: { role: "assistant", content: [{ type: "text", text: "done" }] }, stopReason: "stop", usage };
  const call = { type: "tool_call", callId: "call_0", toolName: "look", input: { place: "Gien" } };
  const script = [answer];
  if (process.argv[1] === "call")
    script.unshift({ message: { role: "assistant", content: [call] }, stopReason: "tool_calls", usage });
  const inputSchema = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
  const look = tool({ name: "look", description: "Looks", inputSchema, execute: async ({ place }) => place });
  const model = { provider: "bench", modelId: "bench", generate: async () => script.shift(), stream() {} };
  const { status } = await new Agent({ name: "first", model, tools: [look] }).invoke("go");
  if (status !== "completed") throw new Error(status);
`;
