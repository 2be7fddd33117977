import { describe, expect, test } from "vitest";
import { actorCritic, type ActorCriticOptions } from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { parseSessionId } from "../../../src/kernel/index.ts";
import type { ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { asked, company, notesOf, runAlone, seen, worker } from "../company.ts";

const sessionId = parseSessionId("studio");
const verdict = (score: number, ...issues: readonly string[]): string =>
  JSON.stringify({ score, issues, summary: `worth ${score}` });

function studio(
  drafts: readonly ScriptStep[],
  verdicts: readonly ScriptStep[],
  options: Partial<ActorCriticOptions> = {},
) {
  const actor = worker("painter", drafts, { instructions: "Paint." });
  const critic = worker("judge", verdicts, { instructions: "Be hard." });
  const architecture = actorCritic({ actor: actor.agent, critic: critic.agent, ...options });
  return { agent: new Agent({ name: "studio", architecture }), actor: actor.model, critic: critic.model };
}

describe("actorCritic()", () => {
  test("actorCritic() repeats answer and critique until the critic approves, without a model of the team's agent", async () => {
    const { agent, actor, critic } = studio(["Grey.", "Blue."], [verdict(0.4, "too grey"), verdict(0.9)]);
    const { result, notes, events } = await runAlone(agent, "Paint the sea.");
    expect(result).toMatchObject({ status: "completed", output: "Blue." });
    expect(result.metadata).toEqual({ actorCritic: { rounds: 2, score: 0.9, approved: true } });
    expect(asked(actor)[0]).toBe("Paint the sea.");
    for (const part of ["Paint the sea.", "Grey.", "worth 0.4", "- too grey"])
      expect(asked(actor)[1]).toContain(part);
    expect(asked(critic)[0]).toBe("# Task\nPaint the sea.\n\n# Answer\nGrey.");
    expect(seen(critic)[0]?.[0]).toMatch(/^Be hard\.\n\nYou judge an answer/u);
    const round = ["actor_started", "actor_completed", "critic_started", "critique"];
    expect(notes).toEqual([...round, ...round, "approved"].map((name) => `actor_critic.${name}`));
    expect(notesOf(events)[3]?.data).toEqual({
      round: 1,
      score: 0.4,
      issues: ["too grey"],
      summary: "worth 0.4",
    });
  });

  test("actorCritic() returns the latest answer as not approved after maxRounds, by default 3", async () => {
    const { agent, critic } = studio(["1", "2", "3"], [verdict(0.8), verdict(0.7), verdict(0.89)]);
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "3" });
    expect(result.metadata).toEqual({ actorCritic: { rounds: 3, score: 0.89, approved: false } });
    expect(notes.at(-1)).toBe("actor_critic.max_rounds_reached");
    expect(critic.calls).toHaveLength(3);
  });

  test.each([
    ["a JSON code block", "```json\n" + verdict(0.95) + "\n```", 0.95],
    ["a score above 1 and its scale", '{"score": "7/10", "issues": []}', 0.7],
    ["a score below 0", verdict(-3), 0],
    ["free text with a score", "A good one. Score: 0.95, I would say.", 0.95],
    ["free text without a score", "I like it.", 0],
    ["JSON without a score", '{"issues": []}', 0],
  ])("actorCritic() parses a critique with %s", async (_what, reply, score) => {
    const { agent } = studio(["1"], [reply], { maxRounds: 1 });
    const { result } = await runAlone(agent);
    expect(result.metadata).toMatchObject({ actorCritic: { score } });
  });

  test("actorCritic() passes a critique in free text to the actor", async () => {
    const { agent, actor } = studio(["1", "2"], ["Add a boat. Score: 0.2", verdict(1)]);
    await runAlone(agent);
    expect(asked(actor)[1]).toContain("Add a boat.");
  });

  test("a round of actorCritic() sees only its own prompt, and the next invocation sees the conversation with the user", async () => {
    const { run } = await company();
    const { agent, actor, critic } = studio(["1", "2", "3"], [verdict(0), verdict(1), verdict(1)]);
    await run(agent, "a", { sessionId });
    await run(agent, "b", { sessionId });
    expect(seen(actor).map((messages) => messages.length)).toEqual([2, 2, 4]);
    expect(seen(critic).map((messages) => messages.length)).toEqual([2, 2, 4]);
    expect(seen(actor)[2]).toEqual(["Paint.", "a", "2", "b"]);
  });

  test("with remember: true, the actor and the critic of actorCritic() continue their own conversations, one per user", async () => {
    const { run } = await company();
    const ones = [verdict(1), verdict(1), verdict(1)];
    const { agent, actor, critic } = studio(["1", "2", "3"], ones, { remember: true });
    await run(agent, "a", { sessionId, userId: "ada" });
    await run(agent, "b", { sessionId, userId: "grace" });
    await run(agent, "c", { sessionId, userId: "ada" });
    expect(seen(actor)).toEqual([
      ["Paint.", "a"],
      ["Paint.", "b"],
      ["Paint.", "a", "1", "c"],
    ]);
    expect(seen(critic).map((messages) => messages.length)).toEqual([2, 2, 4]);
    expect(seen(critic)[2]?.slice(1, 3)).toEqual(["# Task\na\n\n# Answer\n1", verdict(1)]);
  });

  test("B5: actorCritic() returns the last answer when the critic fails or the budget is exhausted", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const failed = await runAlone(studio(["1"], [{ error }]).agent);
    expect(failed.result).toMatchObject({ status: "failed", output: "1", error: { code: "child_failed" } });
    const poor = studio(["1", "2"], [verdict(0), verdict(0)]);
    const { result } = await runAlone(poor.agent, "Go.", { budget: { maxTurns: 3 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "2" });
  });

  test("B5: actorCritic() returns its last complete answer when the revision of this answer is stopped", async () => {
    const again = { text: "One moment.", toolCalls: [{ name: "none", input: {} }] };
    const tired = studio(["Grey.", again], [verdict(0.1)]);
    const spent = await runAlone(tired.agent, "Go.", { budget: { maxTurns: 3 } });
    expect(spent.result).toMatchObject({ status: "budget_exhausted", output: "Grey." });
    const painter = worker("painter", ["Grey.", again], { maxTurns: 1 });
    const bound = studio([], [verdict(0.1)], { actor: painter.agent });
    expect((await runAlone(bound.agent)).result).toMatchObject({ status: "max_turns", output: "Grey." });
    // Without a complete answer, the partial text of the first one is the output.
    const first = studio([again], []);
    const { result } = await runAlone(first.agent, "Go.", { budget: { maxTurns: 1 } });
    expect(result.output).toBe("One moment.");
  });

  test("B5: actorCritic() returns its last complete answer when the run is cancelled during the revision", async () => {
    const { runtime, clock, ended } = await company();
    const again = { text: "One moment.", toolCalls: [{ name: "none", input: {} }] };
    const actor = worker("painter", ["Grey.", again, { text: "never", delayMs: 100 }], {}, { clock });
    const { agent } = studio([], [verdict(0.1)], { actor: actor.agent });
    const run = await runtime.submit(agent, "Go.");
    await until(() => actor.model.calls.length === 3);
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "Grey." });
  });

  test("actorCritic() ends after an empty revision, because the previous answer is already judged", async () => {
    const { agent, actor, critic } = studio(["Grey.", " \n"], [verdict(0.1)]);
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({
      status: "completed",
      output: "Grey.",
      metadata: { actorCritic: { rounds: 1, score: 0.1, approved: false } },
    });
    expect(notes.slice(-2)).toEqual(["actor_critic.actor_started", "actor_critic.empty_answer"]);
    expect([actor.calls.length, critic.calls.length]).toEqual([2, 1]);
    const late = await runAlone(studio([" ", "Blue."], [verdict(0), verdict(1)]).agent);
    expect(late.result.output).toBe("Blue.");
    expect(late.notes).toContain("actor_critic.empty_answer");
  });

  test("S1: a run that exhausts its budget leaves the question and the last answer visible in the session", async () => {
    const { run, store } = await company();
    const { agent } = studio(["1", "2"], [verdict(0), verdict(0)]);
    await run(agent, "Go.", { sessionId, budget: { maxTurns: 2 } });
    const entries = await store.sessions.read(sessionId);
    expect(entries.map(({ entry }) => entry.type === "message" && entry.message.role)).toEqual([
      "user",
      "assistant",
    ]);
  });

  test("C1: actorCritic() calls no model after a cancel while the critic works", async () => {
    const { runtime, clock, ended } = await company();
    const actor = worker("painter", ["1", "never"]);
    const critic = worker("judge", [{ text: verdict(0), delayMs: 100 }], {}, { clock });
    const architecture = actorCritic({ actor: actor.agent, critic: critic.agent });
    const run = await runtime.submit(new Agent({ name: "studio", architecture }), "Go.");
    await until(() => critic.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "1" });
    await clock.advance(1_000);
    expect([actor.model.calls.length, critic.model.calls.length]).toEqual([1, 1]);
  });

  test("actorCritic() refuses an invalid maxRounds or approvalThreshold", () => {
    expect(() => studio([], [], { maxRounds: 0 })).toThrow("invalid maxRounds 0 of actorCritic()");
    expect(() => studio([], [], { approvalThreshold: 9 })).toThrow(
      "invalid approvalThreshold 9 of actorCritic()",
    );
  });
});
