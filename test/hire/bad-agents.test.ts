import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { agentCode, agentFile, ready } from "./agent-file.ts";
import { eventOf, eventsOf, hireWorld, tempFolder } from "./hire-world.ts";

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

test("hiredAgent() refuses options that it cannot use, and names the package of a preset", async () => {
  const { hire, runtime } = await hireWorld([{ say: "unused" }]);
  expect(() => hire({ preset: "claude" } as object)).toThrow('use "claude-code"');
  expect(() => hire({ command: [] })).toThrow("expected a program and its arguments");
  expect(() => hire({ model: "m" })).toThrow("only a preset knows how its agent chooses a model");
  expect(() => hire({ env: { OPENAI_API_KEY: "k" } })).toThrow("the agent could spend past the gateway");
  expect(() => hire({ inheritEnv: ["AWS_PROFILE"] })).toThrow("the agent could spend past the gateway");
  expect(() => hire({ home: "user", sandbox: "enforce" })).toThrow('use sandbox: "off"');
  expect(() => hire({ tools: [] } as object)).toThrow('unknown option "tools"');
  const missing = hire({ preset: "claude-code", command: ["reeve-no-such-agent"] });
  const { error } = await (await runtime.submit(missing, "Work.")).result();
  expect(error?.message).toContain("npm install -g @agentclientprotocol/claude-agent-acp");
});

test("a preset of a hired agent sets the agent's model, and its token works only for its own provider's protocol", async () => {
  const { folder, hire, runtime, upstream } = await hireWorld([
    { run: 'env; curl -s -H "authorization: Bearer $OPENAI_API_KEY" -d "{}" $OPENAI_BASE_URL/responses' },
    { say: "Done." },
  ]);
  const agent = hire({
    preset: "claude-code",
    model: "claude-opus-4-5",
    command: agentFile("demo-process"),
    permissions: permissions({ mode: "bypass" }),
  });
  const run = await runtime.submit(agent, `Work in ${folder}.`);
  expect((await run.result()).output).toBe("Done.");
  const ends = (await eventsOf(run)).filter(({ type }) => type === "tool_execution_end");
  expect(JSON.stringify(ends)).toContain("the token is for the wire anthropic");
  expect(upstream.bodies.map(({ model }) => model)).toEqual(["claude-opus-4-5", "claude-opus-4-5"]);
});

test("a hired agent with isolation is refused outside a repository, and a question about a path outside its folder is marked", async () => {
  const world = await hireWorld([{ say: "unused" }]);
  const isolation = { worktree: { repository: world.folder, folder: await tempFolder() } };
  const lost = await world.runtime.submit(world.hire({ isolation }), "Hi.");
  const { status, error } = await lost.result();
  expect(status).toBe("failed");
  expect(error?.message).toContain("is not in a git repository");
  expect(world.upstream.received).toEqual([]);

  const options = '[{ optionId: "yes", name: "Yes", kind: "allow_once" }]';
  const toolCall =
    '{ toolCallId: "c", kind: "edit", rawInput: { path: "../other/a.txt" }, locations: [{ path: "../other/a.txt" }] }';
  const command = agentCode(
    `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/prompt")
      send({ id: "ask", method: "session/request_permission", params: { sessionId: "s", toolCall: ${toolCall}, options: ${options} } }); }`,
  );
  const run = await world.runtime.submit(world.hire({ name: "editor", command }), "Hi.");
  const { foreign } = await eventOf(run, "approval_request");
  expect(foreign?.locations).toEqual([{ path: expect.stringMatching(/other\/a\.txt$/u), isOutside: true }]);
  await run.cancel();
  expect((await run.result()).status).toBe("cancelled");
});
