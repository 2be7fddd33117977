import { lines, type Part, type Reply } from "./demo-model.ts";

/** What the agents of the company say. Each line is made from the results of the tools before it. */

export const lead: Part = lines(
  () => ({
    text: "The checklist decides. Three questions can be answered at the same time.",
    calls: [
      call("read", { path: "RELEASING.md" }),
      handOff("research", "What does 0.9 stand on, and may we ship it?"),
      handOff("build", "Do the tests pass? Repair what fails."),
      handOff("review", "Is every exported function documented?"),
    ],
  }),
  () => ({
    text: "Nothing blocks the release any more.",
    calls: [handOff("release", "Write the changelog and set the version to 0.9.0.")],
  }),
  (results) => ({ text: `tally 0.9.0 is ready.\n${results.slice(1).map(item).join("\n")}` }),
);

export const research: Part = lines(
  () => ({
    text: "Dependencies, advisories and size, side by side.",
    calls: [
      handOff("packages", "Which packages does it depend on, and under which licences?"),
      handOff("advisories", "Does an advisory apply to our versions?"),
      handOff("size", "How many source files and exported functions are there?"),
    ],
  }),
  ([packagesReport = "", advisoriesReport = "", sizeReport = ""]) => ({
    text: `Fit to ship: ${number(packagesReport)} packages, ${number(advisoriesReport)} advisories, ${number(sizeReport)} files.`,
  }),
);

export const packages: Part = lines(
  () => ({
    text: "Whether we may ship them is a question for licence.",
    calls: [
      call("read", { path: "package.json" }),
      handOff("licence", "Under which licences are the packages in vendor?"),
    ],
  }),
  ([manifest, licences]) => ({ text: `${dependencies(manifest).length} packages: ${licences}` }),
);

export const licence: Part = lines(
  () => ({
    calls: ["kroner", "slimdate"].map((name) => call("read", { path: `vendor/${name}/LICENSE` })),
  }),
  (results) => {
    const titles = results.map(
      (text) => /\w[\w ]* Licen[cs]e[\w .]*/u.exec(text)?.[0].trim() ?? "no licence",
    );
    return { text: `${list(titles)}, both fit to ship.` };
  },
);

export const advisories: Part = lines(
  () => ({ calls: [call("read", { path: "advisories.json" })] }),
  () => ({ calls: [call("grep", { pattern: "slimdate|kroner", path: "src" })] }),
  () => ({ calls: [call("grep", { pattern: "slimdate|kroner", path: "package.json" })] }),
  () => ({ calls: [call("grep", { pattern: "advisor", path: "RELEASING.md" })] }),
  ([all = ""]) => ({ text: `${count(all, /ADV-/gu)} advisories, none of which applies to our versions.` }),
);

export const size: Part = lines(
  () => ({ calls: [call("ls", {})] }),
  () => ({ calls: [call("find", { pattern: "src/**/*.js" })] }),
  () => ({ calls: [call("ls", { path: "src" })] }),
  () => ({ calls: [call("grep", { pattern: "^export function", path: "src" })] }),
  ([, files = "", , functions = ""]) => ({
    text: `${count(files, /\.js/gu)} source files, ${count(functions, /export function/gu)} functions.`,
  }),
);

const oldRounding = "  return Math.round(amount * 100) / 100;";
const newRounding = "  return Number(`${Math.round(Number(`${amount}e2`))}e-2`);";

export const build: Part = lines(
  () => ({ text: "First the tests, as they are.", calls: [call("test", {})] }),
  ([tests = ""]) =>
    failures(tests) === 0
      ? { text: "All tests pass. Nothing to repair." }
      : { text: "A rounding error.", calls: [call("read", { path: "src/round.js" })] },
  () => ({
    text: "1.005 times 100 is 100.49999. Shifting the decimal point in the text avoids that.",
    calls: [call("edit", { path: "src/round.js", oldText: oldRounding, newText: newRounding })],
  }),
  () => ({ calls: [call("test", {})] }),
  ([before = "", , , after = ""]) => ({
    text:
      failures(after) === 0
        ? `${failures(before)} rounding error repaired, all tests pass.`
        : `${failures(after)} test fails, the change was not approved.`,
  }),
);

export const review: Part = lines(
  () => ({
    text: "One reads the surface, one reads the documents.",
    calls: [
      handOff("reviewer_api", "Which functions does the package export?"),
      handOff("reviewer_docs", "Which functions do the documents describe?"),
    ],
  }),
  ([api = "", docs = ""]) => ({
    text: `${number(api)} exported functions, ${number(docs)} of them documented.`,
  }),
);

export const reviewerApi: Part = lines(
  () => ({ calls: [call("read", { path: "src/index.js" })] }),
  () => ({ calls: [call("grep", { pattern: "^export function", path: "src" })] }),
  () => ({ calls: [call("read", { path: "src/invoice.js" })] }),
  () => ({ calls: [call("read", { path: "src/due-date.js" })] }),
  ([, found = ""]) => ({ text: `${count(found, /export function/gu)} exported functions.` }),
);

export const reviewerDocs: Part = lines(
  () => ({ calls: [call("read", { path: "docs/api.md" })] }),
  () => ({ calls: [call("grep", { pattern: "^## ", path: "docs/api.md" })] }),
  () => ({ calls: [call("read", { path: "README.md" })] }),
  () => ({ calls: [call("grep", { pattern: "docs/", path: "README.md" })] }),
  ([, found = ""]) => ({ text: `${count(found, /## /gu)} documented functions.` }),
);

export const release: Part = lines(
  () => ({ calls: [handOff("changelog", "Write the section for 0.9.0 from NOTES.md.")] }),
  () => ({
    calls: [
      call("edit", { path: "package.json", oldText: '"version": "0.8.2"', newText: '"version": "0.9.0"' }),
    ],
  }),
  () => ({ calls: [call("grep", { pattern: "0\\.9\\.0", glob: "*.{json,md}" })] }),
  ([, , found = ""]) => ({
    text: `0.9.0 is in ${list(["CHANGELOG.md", "package.json"].filter((file) => found.includes(file)))}.`,
  }),
);

export const changelog: Part = lines(
  () => ({ calls: ["NOTES.md", "CHANGELOG.md"].map((path) => call("read", { path })) }),
  ([notes = "", before = ""]) =>
    before.includes("## 0.9.0")
      ? { text: "CHANGELOG.md has a section for 0.9.0 already." }
      : {
          text: "Users see what was added and fixed.",
          calls: [call("write", { path: "CHANGELOG.md", content: withSection(notes, before) })],
        },
  () => ({ calls: [call("read", { path: "CHANGELOG.md" })], isSlow: true }),
  ([, , , written = ""]) => ({
    text: `CHANGELOG.md has ${count(written, /## 0\.9\.0/gu)} section for 0.9.0.`,
  }),
);

function withSection(notes: string, before: string): string {
  const items = [...notes.matchAll(/^- (added|fixed): (.+)$/gmu)].map(
    ([, kind = "", what = ""]) => `- ${kind[0]?.toUpperCase()}${kind.slice(1)}: ${what}.`,
  );
  const fixed = "- Fixed: round(1.005) is 1.01.";
  return before.replace(
    "# Changelog\n",
    () => `# Changelog\n\n## 0.9.0\n\n${[...items, fixed].join("\n")}\n`,
  );
}

function call(tool: string, input: Readonly<Record<string, string>>): NonNullable<Reply["calls"]>[number] {
  return { tool, input };
}

function handOff(key: string, task: string): NonNullable<Reply["calls"]>[number] {
  return call(`handoff_${key}`, { task });
}

function item(text: string): string {
  return `- ${text}`;
}

function list(names: readonly string[]): string {
  return names.join(" and ");
}

function dependencies(manifest = ""): readonly string[] {
  const block = /"dependencies": \{([^}]*)\}/u.exec(manifest)?.[1] ?? "";
  return [...block.matchAll(/"([^"]+)":/gu)].map(([, name = ""]) => name);
}

/** The first number in a report. */
function number(report: string): string {
  return /\d+/u.exec(report)?.[0] ?? "no";
}

function failures(tests: string): number {
  return Number(/# fail (\d+)/u.exec(tests)?.[1] ?? 0);
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
