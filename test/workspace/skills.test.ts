import { join } from "node:path";
import { toPrompt, validate } from "skills-ref";
import { describe, expect, test } from "vitest";
import { Notices } from "../../src/workspace/files/notices.ts";
import { readDocument, readKnowledge } from "../../src/workspace/files/skills/knowledge.ts";
import {
  fillTemplate,
  parseSlash,
  readTemplates,
} from "../../src/workspace/files/skills/prompt-templates.ts";
import { readSkills } from "../../src/workspace/files/skills/read-skills.ts";
import { skillBlock } from "../../src/workspace/files/skills/skill-block.ts";
import { testFolders, type TestFolders } from "./folders.ts";

function skill(name: string, extra = "", description = `Does ${name}.`): string {
  return `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n${extra}---\n\nBody of ${name}.\n`;
}

function skillsOf({ project }: TestFolders, notices = new Notices()) {
  const sources = ["first", "second"].map((name) => ({
    folder: join(project, name),
    origin: name,
    isTrusted: true,
    within: project,
  }));
  return readSkills(sources, notices);
}

describe("skills of a workspace", () => {
  test("skills-ref accepts 20 skills, and its to-prompt equals the list of skills in the system prompt", async () => {
    const folders = await testFolders();
    const kinds = [
      "",
      "license: Apache-2.0\n",
      "compatibility: Requires git\n",
      "metadata:\n  author: example\n  version: '1.0'\n",
      "allowed-tools: Bash(git:*) Read\n",
    ];
    const texts = ["Plain.", "Quotes \"and\" 'more'.", "Angles <b> & ampersands.", "Ünïcödé 日本 😀."];
    const names = Array.from({ length: 20 }, (_, index) => `skill-${String(index).padStart(2, "0")}`);
    for (const [index, name] of names.entries())
      await folders.write({
        [`first/${name}/SKILL.md`]: skill(name, kinds[index % kinds.length], texts[index % texts.length]),
      });
    const notices = new Notices();
    const skills = await skillsOf(folders, notices);
    expect(skills.map(({ name }) => name)).toEqual(names);
    expect(notices.all).toEqual([]);
    for (const { folder } of skills) expect(await validate(folder)).toEqual([]);
    expect(skillBlock(skills)).toBe(await toPrompt(skills.map(({ folder }) => folder)));
  });

  test("the body of a skill is read when it is needed", async () => {
    const folders = await testFolders();
    await folders.write({ "first/lint/SKILL.md": skill("lint") });
    const [lint] = await skillsOf(folders);
    await folders.write({ "first/lint/SKILL.md": skill("lint").replace("Body", "New body") });
    expect(await lint?.read()).toBe("New body of lint.");
  });

  test("the first of two skills with one name is used, and the second is reported", async () => {
    const folders = await testFolders();
    await folders.write({ "first/lint/SKILL.md": skill("lint"), "second/lint/SKILL.md": skill("lint") });
    const notices = new Notices();
    const skills = await skillsOf(folders, notices);
    expect(skills.map(({ origin }) => origin)).toEqual(["first"]);
    expect(notices.all).toEqual([
      {
        kind: "duplicate",
        path: join(folders.project, "second/lint/SKILL.md"),
        message: `skill lint is already defined by ${join(folders.project, "first/lint/SKILL.md")}, which is used`,
      },
    ]);
  });

  test.for([
    ["another folder", skill("other"), "differs from the folder bad"],
    ["no description", "---\nname: bad\n---\n", "has no description"],
    ["a long description", skill("bad", "", "x".repeat(1_025)), "at most 1024"],
    ["a name with ..", skill("../bad"), "invalid skill name"],
    ["an upper-case name", skill("Bad"), "invalid skill name"],
    ["a long compatibility", skill("bad", `compatibility: ${"x".repeat(501)}\n`), "invalid compatibility"],
    ["wrong allowed-tools", skill("bad", "allowed-tools: 5\n"), "invalid allowed-tools"],
    ["a body longer than its limit", skill("bad") + "x".repeat(300_000), "longer than 262144 bytes"],
    ["broken YAML", "---\nname: [\n---\n", "invalid YAML"],
  ] as const)("a skill with %s is left out with a warning", async ([, text, message]) => {
    const folders = await testFolders();
    await folders.write({ "first/bad/SKILL.md": text, "first/good/SKILL.md": skill("good") });
    const notices = new Notices();
    expect((await skillsOf(folders, notices)).map(({ name }) => name)).toEqual(["good"]);
    expect(notices.all).toHaveLength(1);
    expect(notices.all[0]).toMatchObject({ kind: "warning" });
    expect(notices.all[0]?.message).toContain(message);
  });

  test("an unknown key of a skill is a warning, and disable-model-invocation hides the skill from the model", async () => {
    const folders = await testFolders();
    await folders.write({ "first/a/SKILL.md": skill("a", "disable-model-invocation: true\nowner: me\n") });
    const notices = new Notices();
    expect(await skillsOf(folders, notices)).toMatchObject([{ name: "a", hidden: true }]);
    expect(notices.all[0]?.message).toContain('unknown key "owner"');
  });

  test("allowed-tools of a skill is a text with spaces or a list", async () => {
    const folders = await testFolders();
    await folders.write({
      "first/a/SKILL.md": skill("a", "allowed-tools: Bash(git status:*) Read, Grep\n"),
      "first/b/SKILL.md": skill("b", "allowed-tools:\n  - Bash(git:*)\n  - Read\n"),
    });
    expect((await skillsOf(folders)).map(({ allowedTools }) => allowedTools)).toEqual([
      ["Bash(git status:*)", "Read", "Grep"],
      ["Bash(git:*)", "Read"],
    ]);
  });

  test("a skill whose folder is a cyclic link or leads outside is left out", async () => {
    const folders = await testFolders();
    await folders.write({ "~/secret/SKILL.md": skill("secret"), "first/good/SKILL.md": skill("good") });
    await folders.link("first/secret", join(folders.user, "secret"));
    await folders.link("first/loop", join(folders.project, "first/loop"));
    const notices = new Notices();
    expect((await skillsOf(folders, notices)).map(({ name }) => name)).toEqual(["good"]);
    expect(notices.all[0]?.message).toContain("leads outside");
  });
});

describe("knowledge of a workspace", () => {
  test("index.yaml of knowledge lists documents, and always_load adds their content to the prompt", async () => {
    const { project, write } = await testFolders();
    await write({
      "k/index.yaml":
        "- path: company/overview.md\n  always_load: true\n  priority: high\n- path: api.md\n  tags: [api]\n  description: The API\n",
      "k/company/overview.md": "We make lamps.",
      "k/api.md": "GET /lamps",
      "k/unlisted.md": "x",
    });
    const documents = await readKnowledge([{ folder: join(project, "k") }], new Notices());
    expect(documents).toMatchObject([
      { path: "company/overview.md", content: "We make lamps.", priority: "high" },
      { path: "api.md", tags: ["api"], description: "The API" },
    ]);
    expect(documents[1]).not.toHaveProperty("content");
    expect(await readDocument(documents[1] as (typeof documents)[number])).toBe("GET /lamps");
  });

  test("every Markdown file of knowledge is read on demand without index.yaml, and the first folder takes precedence", async () => {
    const { project, write } = await testFolders();
    await write({ "k/a.md": "1", "k/b.txt": "2", "l/a.md": "3", "l/c.md": "4" });
    const notices = new Notices();
    const documents = await readKnowledge(
      [{ folder: join(project, "k") }, { folder: join(project, "l") }],
      notices,
    );
    expect(documents.map(({ file }) => file)).toEqual([join(project, "k/a.md"), join(project, "l/c.md")]);
    expect(notices.all).toMatchObject([{ kind: "duplicate", path: join(project, "l/a.md") }]);
  });

  test.for([
    ["- path: ../secret.md\n", "leads outside the folder"],
    ["- path: absent.md\n", "does not exist"],
    ["- always_load: true\n", "the path is missing"],
    ["- path: a.md\n  priority: urgent\n", "priority of a.md is none of"],
    ["a: 1\n", "expected a list of documents"],
  ] as const)("the index.yaml %j of knowledge is a warning", async ([text, message]) => {
    const { project, write } = await testFolders();
    await write({ "k/index.yaml": text, "k/a.md": "", "secret.md": "s" });
    const notices = new Notices();
    expect(await readKnowledge([{ folder: join(project, "k") }], notices)).toEqual([]);
    expect(notices.all.map((notice) => notice.message).join()).toContain(message);
  });
});

describe("prompt templates of a workspace", () => {
  test.for([
    ["Review $1 for $2.", 'src/a.ts "two words"', "Review src/a.ts for two words."],
    ["All: $ARGUMENTS and $@", "a b", "All: a b and a b"],
    ["None", "", "None"],
    ["No placeholder", "some text", "No placeholder\n\nsome text"],
    ["Missing $2.", "one", "Missing ."],
    ["Costs $10 or $ARGUMENTSX", "5", "Costs 50 or $ARGUMENTSX"],
    ["$1", "$2 $1", "$2"],
  ] as const)("the prompt template %j with %j becomes %j", ([body, words, expected]) => {
    expect(fillTemplate(body, words)).toBe(expected);
  });

  test("an input /name is a prompt template, and a path or another text is not", () => {
    expect(parseSlash("/review src/a.ts")).toEqual({ name: "review", argumentText: "src/a.ts" });
    expect(parseSlash("/skill:lint fix\nall")).toEqual({ name: "skill:lint", argumentText: "fix\nall" });
    for (const text of ["/etc/passwd", "/../x", "review", "/", "// comment"])
      expect(parseSlash(text)).toBeUndefined();
  });

  test("prompt templates are files, the first folder takes precedence, and a bad name is a warning", async () => {
    const { project, write } = await testFolders();
    await write({
      "p/review.md": "---\ndescription: Reviews\n---\nReview $1",
      "q/review.md": "other",
      "q/plan.md": "Plan",
      "q/..bad.md": "x",
    });
    const notices = new Notices();
    const sources = ["p", "q"].map((name) => ({ folder: join(project, name), within: project }));
    const templates = await readTemplates(sources, notices);
    expect(templates).toMatchObject([
      { name: "review", description: "Reviews", body: "Review $1" },
      { name: "plan", body: "Plan" },
    ]);
    expect(notices.all.map(({ kind }) => kind).toSorted()).toEqual(["duplicate", "warning"]);
  });
});
