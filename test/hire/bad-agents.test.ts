import { expect, test } from "vitest";
import { agentCode, ready } from "./agent-file.ts";
import { hireWorld } from "./hire-world.ts";

const cases = {
  "a missing program": {
    command: ["/nowhere/agent"],
    code: "agent_not_found",
    says: "the program /nowhere/agent of agent coder does not exist",
  },
  "a program that is not in the PATH": {
    command: ["reeve-no-such-agent"],
    code: "agent_not_found",
    says: "is not in the PATH of Reeve",
  },
  "an agent that never answers": {
    command: agentCode("() => {}"),
    code: "agent_protocol",
    says: "did not answer initialize within 500 ms",
    startTimeoutMs: 500,
  },
  "a program that prints something else": {
    command: agentCode("() => {}", 'console.log("Welcome!")'),
    code: "agent_protocol",
    says: 'it printed "Welcome!"',
    startTimeoutMs: 2_000,
  },
  "a program that floods its output": {
    command: agentCode("() => {}", 'for (let i = 0; i < 2000; i++) console.log("line")'),
    code: "agent_protocol",
    says: "printed more than 1000 lines",
  },
  "a line without an end": {
    command: agentCode("() => {}", 'for (let i = 0; i < 34; i++) process.stdout.write("x".repeat(1 << 20))'),
    code: "agent_protocol",
    says: "a line of more than",
  },
  "an agent that exits": {
    command: agentCode(
      "() => {}",
      "console.error('no token ' + process.env.ANTHROPIC_AUTH_TOKEN); process.exit(3)",
    ),
    code: "agent_crashed",
    says: "ended with exit code 3; its last output: no token [removed]",
  },
  "another version of the protocol": {
    command: agentCode("({ id }) => send({ id, result: { protocolVersion: 9 } })"),
    code: "agent_protocol",
    says: "speaks version 9 of the Agent Client Protocol, and Reeve speaks version 1",
  },
  "an agent that asks for a login": {
    command: agentCode(
      `${ready} else send({ id, error: { code: -32000, message: "Authentication required" } }); }`,
    ),
    code: "agent_login_required",
    says: "a subscription has no price that a budget could bound",
  },
  "an agent that refuses a prompt": {
    command: agentCode(
      `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } }); else send({ id, error: { code: -32603, message: "Internal" } }); }`,
    ),
    code: "child_failed",
    says: "answered session/prompt with an error: Internal",
  },
  "a session without an id": {
    command: agentCode(`${ready} else send({ id, result: {} }); }`),
    code: "agent_protocol",
    says: "answered session/new with something else than the protocol says",
  },
} as const;

test.for(Object.entries(cases))("a hired agent fails with the reason for %s", async ([, bad]) => {
  const { runtime, hire } = await hireWorld([{ say: "unused" }]);
  const { command, code, says, startTimeoutMs } = { startTimeoutMs: 60_000, ...bad };
  const run = await runtime.submit(hire({ command, startTimeoutMs }), "Work.");
  const { status, error } = await run.result();
  expect([status, error?.code]).toEqual(["failed", code]);
  expect(error?.message).toContain(says);
});
