import { describe, expect, test } from "vitest";
import { reeve } from "./reeve-process.ts";

describe("reeve demo", () => {
  test("reeve demo spawns, preempts, is killed and resumed, and its ledger matches the bill", async () => {
    const { code, out, talk } = await reeve(["demo", "--pace", "60"]);
    expect({ code, talk }).toEqual({ code: 0, talk: "" });
    const text = out.join("\n");
    const inOrder = [
      "lead      hires size (LOW)",
      "packages  wants licence (HIGH), but every seat is taken: size must yield",
      "size      has finished its call and yields its seat",
      "size      is recalled and resumes from its journal",
      "kill -9",
      "lead      is resumed by another process from the file",
      "charged as unreported",
      "The answer",
      "No answer was paid for twice.",
      "The log's chain verifies",
    ];
    const places = inOrder.map((words) => text.indexOf(words));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(text).toContain("It is under the MIT License.");
  });

  test("reeve demo refuses an invalid pace", async () => {
    const { code, talk } = await reeve(["demo", "--pace", "slow"]);
    expect(code).toBe(2);
    expect(talk).toContain("invalid --pace slow: expected milliseconds from 0");
  });
});
