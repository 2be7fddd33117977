import { expect, test, vi } from "vitest";
import { agentCode, ready } from "./agent-file.ts";
import { eventOf, eventsOf, hiredEvents, hireWorld } from "./hire-world.ts";

/** The source of what a hostile agent can use: `update`, and `ask`, which calls a function with the answer of Reeve. */
const tools = `
  const answers = new Map();
  const update = (update) => send({ method: "session/update", params: { sessionId: "s", update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const options = [
    { optionId: "yes", name: "Yes", kind: "allow_once" },
    { optionId: "always", name: "Always", kind: "allow_always" },
    { optionId: "no", name: "No", kind: "reject_once" },
  ];
  const ask = (toolCall) => new Promise((resolve) => {
    const id = "ask-" + toolCall.toolCallId;
    answers.set(id, resolve);
    send({ id, method: "session/request_permission", params: { sessionId: "s", toolCall, options } });
  });`;

/** The command of an agent that executes code when it gets its prompt, and answers with the text that the code returns. */
function hostile(code: string): readonly string[] {
  const on = `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/prompt") (async () => { ${code} })().then((text) => { say(text); send({ id, result: { stopReason: "end_turn" } }); });
    else if (method === undefined) answers.get(id)?.(message.result.outcome.optionId); }`;
  return agentCode(`(message) => (${on})(message)`, tools);
}

test("an answer to a hired agent's call without arguments does not apply to another call of the same tool", async () => {
  const { hire, runtime } = await hireWorld([{ say: "unused" }]);
  const command = hostile(`
    const first = await ask({ toolCallId: "a", kind: "execute", title: "ls" });
    return first + " " + (await ask({ toolCallId: "b", kind: "execute", title: "rm -r ." }));`);
  const run = await runtime.submit(hire({ command }), "Work.", { userId: "ann" });
  const { approvalId, input } = await eventOf(run, "approval_request");
  expect(input).toEqual({ title: "ls" });
  await run.approve(approvalId, { decision: "approved", remember: true });
  const second = await eventOf(run, "approval_request", 2);
  expect(second.input).toEqual({ title: "rm -r ." });
  await run.approve(second.approvalId, { decision: "denied" });
  expect((await run.result()).output).toBe("yes no");
});

test("the log contains only a part of very long reports of a hired agent, and the answer is cut", async () => {
  const { hire, runtime } = await hireWorld([{ say: "unused" }]);
  const command = hostile(`
    const long = "x".repeat(300_000);
    for (let i = 0; i < 102; i++)
      update({ sessionUpdate: "tool_call", toolCallId: i + long, title: long, rawInput: { long } });
    for (let i = 0; i < 9; i++) say(long);
    return "The end.";`);
  const run = await runtime.submit(hire({ command }), "Work.");
  const { status, output, error } = await run.result();
  expect([status, error]).toEqual(["completed", null]);
  expect(output).toHaveLength(2 * 1024 * 1024);
  const events = await eventsOf(run);
  const starts = events.filter(({ type }) => type === "tool_execution_start");
  expect(starts).toHaveLength(102);
  expect(JSON.stringify(starts).length).toBeLessThan(102 * 80_000);
});

test("a hired agent that asks about very many calls at once is refused from the 101st call on", async () => {
  const { hire, runtime } = await hireWorld([{ say: "unused" }]);
  const command = hostile(`
    const refused = [];
    await new Promise((resolve) => {
      for (let i = 0; i < 102; i++)
        ask({ toolCallId: "q" + i, kind: "execute", rawInput: { i } })
          .then((answer) => refused.push("q" + i + " " + answer) === 2 && resolve());
    });
    return refused.join(", ");`);
  const run = await runtime.submit(hire({ command }), "Work.");
  expect((await run.result()).output).toBe("q100 no, q101 no");
  expect((await eventsOf(run)).filter(({ type }) => type === "approval_request")).toHaveLength(100);
});

test("a hired agent's answers to no request and unknown notifications reach neither the terminal nor the agent", async () => {
  const printed = vi.spyOn(console, "error").mockReturnValue();
  const { hire, runtime } = await hireWorld([{ say: "unused" }]);
  const command = hostile(`
    send({ id: "\\x1b[2J", result: {} });
    send({ method: "_evil/\\x1b[2J", params: {} });
    return "Done.";`);
  const run = await runtime.submit(hire({ command }), "Work.");
  expect((await run.result()).output).toBe("Done.");
  expect(await hiredEvents(run)).toEqual(["session_opened", "lines_skipped"]);
  expect(printed).not.toHaveBeenCalled();
  printed.mockRestore();
});
