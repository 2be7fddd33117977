import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { permissions } from "../../../src/entries/index.ts";
import { type PermissionsOptions } from "../../../src/agents/interception/permissions/permissions.ts";
import { pathRule, type PathRuleOptions } from "../../../src/capabilities/tools/index.ts";
import { gatedCall } from "../../agents/interception/gate/gated-call.ts";
import { tempFolder } from "../tools/call-tool.ts";

type Kind = "allow" | "ask" | "deny";

/** Returns what a policy with one path rule decides on a call. Without a matching rule the tool is asked about. */
function decide(
  kind: Kind,
  options: Omit<PathRuleOptions, "tool">,
  path: unknown,
  toolName = "write",
): string {
  const rules: PermissionsOptions = { [kind]: [pathRule({ tool: "*", ...options })] };
  const input = path === undefined ? {} : { path };
  const { call, tool, facts } = gatedCall({ toolName, tool: { risk: "high", destructive: true } });
  return permissions(rules).check({ ...call, input: input as never }, tool, facts, {
    sent: input as never,
    parsed: input,
  }).decision;
}

async function workspace(): Promise<string> {
  const root = await tempFolder();
  await mkdir(join(root, "src/deep"), { recursive: true });
  await mkdir(join(root, "secrets"));
  await writeFile(join(root, "secrets/key"), "k");
  await writeFile(join(root, ".env"), "e");
  await symlink("../secrets", join(root, "src/link"));
  await symlink("../secrets/new", join(root, "src/dangling"));
  await symlink("deep", join(root, "src/inside"));
  return root;
}

describe("pathRule()", () => {
  test.for([
    "secrets",
    "secrets/key",
    "./secrets/key",
    "secrets//key",
    "secrets/./key",
    "secrets/",
    "src/../secrets/key",
    "src/deep/../../secrets/key",
    "nowhere/../secrets/key",
    "secrets/new/file",
    "src/link/key",
    "src/link",
    "src/dangling",
    "src/link/../.env",
    ".env",
  ])("a deny pathRule() applies to %s", async (path) => {
    const root = await workspace();
    expect(decide("deny", { root, paths: ["secrets", ".env"] }, path)).toBe("deny");
    expect(decide("deny", { root, paths: [join(root, "secrets"), join(root, ".env")] }, path)).toBe("deny");
    expect(decide("ask", { root, paths: ["secrets", ".env"] }, path)).toBe("ask");
  });

  test("a deny pathRule() applies to an absolute path, inside and outside the root", async () => {
    const root = await workspace();
    expect(decide("deny", { root, paths: ["secrets"] }, join(root, "src/../secrets/key"))).toBe("deny");
    expect(decide("deny", { root, paths: ["/etc"] }, "/etc/../etc/passwd")).toBe("deny");
    expect(decide("deny", { root, paths: ["/etc"] }, "../".repeat(40) + "etc/passwd")).toBe("deny");
  });

  test.for(["src", "src/a.ts", "secretsOther", "secrets.txt", ".env.example", "..secrets"])(
    "a deny pathRule() does not apply to %s",
    async (path) => {
      const root = await workspace();
      expect(decide("deny", { root, paths: ["secrets", ".env"] }, path)).toBe("ask");
    },
  );

  test.for(["src/a.ts", "src", "src/deep/../b.ts", "src/inside/c.ts", "src/new/d.ts"])(
    "an allow pathRule() applies to %s",
    async (path) => {
      const root = await workspace();
      expect(decide("allow", { root, paths: ["src"] }, path)).toBe("allow");
    },
  );

  test.for([
    "secrets/key",
    "src/../secrets/key",
    "src/link/key",
    "src/dangling",
    "src/link/../.env",
    "srcOther",
    "/etc/passwd",
    "..",
    ".",
    "src\0",
    7,
    null,
    ["src"],
    undefined,
  ])("an allow pathRule() does not apply to %j", async (path) => {
    const root = await workspace();
    expect(decide("allow", { root, paths: ["src"] }, path)).toBe("ask");
  });

  test("a deny pathRule() applies to an argument that is not a path", async () => {
    const root = await workspace();
    for (const path of [7, null, ["src"], "a\0b"])
      expect(decide("deny", { root, paths: ["secrets"] }, path)).toBe("deny");
  });

  test("a deny pathRule() applies to a recursive tool on a folder that contains the path", async () => {
    const root = await workspace();
    const paths = ["secrets"];
    expect(decide("deny", { root, paths }, undefined, "grep")).toBe("deny");
    expect(decide("deny", { root, paths }, ".", "find")).toBe("deny");
    expect(decide("deny", { root, paths }, "src", "grep")).toBe("ask");
    expect(decide("deny", { root, paths }, ".", "ls")).toBe("ask");
    expect(decide("deny", { root, paths, recursive: ["tree"] }, ".", "tree")).toBe("deny");
    expect(decide("deny", { root, paths, recursive: [] }, ".", "grep")).toBe("ask");
  });

  test("pathRule() reads the argument whose name it is given, and gives its reason", async () => {
    const root = await workspace();
    const rule = pathRule({ tool: "move", root, argument: "to", paths: ["secrets"], reason: "not there" });
    const { call, tool, facts } = gatedCall({ toolName: "move" });
    const input = { path: "src", to: "secrets/x" };
    const decision = permissions({ deny: [rule] }).check({ ...call, input }, tool, facts, {
      sent: input,
      parsed: input,
    });
    expect(decision).toEqual({ decision: "deny", reason: "not there" });
  });

  test("pathRule() refuses an empty list of paths and a value that is no list", () => {
    expect(() => pathRule({ tool: "*", paths: [] })).toThrow("invalid paths of the rule for *");
    expect(() => pathRule({ tool: "*", paths: "src" as never })).toThrow(
      'invalid paths "src" of pathRule(): expected an array',
    );
  });
});
