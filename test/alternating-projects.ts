import { stat } from "node:fs/promises";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, mostly because they wait for processes. They start first, so that none is left at the end. */
const slowest = [
  "test/crash/crashes.test.ts",
  "test/restate/engines.test.ts",
  "test/package/commands.test.ts",
  "test/package/examples.test.ts",
  "test/restate/fleet.test.ts",
  "test/crash/thinkers.test.ts",
  "test/crash/crash-loop.test.ts",
  "test/restate/worker.test.ts",
  "test/attacks/floods.test.ts",
  "test/mcp/client.test.ts",
  "test/restate/slices.test.ts",
  "test/package/walkthroughs.test.ts",
  "test/restate/crashes.test.ts",
  "test/restate/deploy.test.ts",
  "test/postgres/contract.test.ts",
  "test/postgres/crashes.test.ts",
  "test/postgres/fleet.test.ts",
  "test/contract/engines.test.ts",
  "test/processes/schedules-year.test.ts",
];

/**
 * Alternates the files of all isolated projects, so that suites that wait for processes run at the same time as suites
 * that need the processor. The files of a project are in the order of their known duration, and then of their size.
 * Projects whose files share a process follow as one block each, because Vitest ends such a process when the next file
 * belongs to another project. The project with the most files is last, because its files are short.
 */
export class AlternatingProjects extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranked = await Promise.all(
      files.map(async (file) => ({ file, rank: await rankOf(file.moduleId) })),
    );
    const longestFirst = ranked.toSorted((one, other) => other.rank - one.rank).map(({ file }) => file);
    const projects = [...Map.groupBy(longestFirst, ({ project }) => project.name).values()];
    const isShared = ([file]: readonly TestSpecification[]): boolean =>
      file?.project.config.isolate === false;
    return [
      ...alternated(projects.filter((each) => !isShared(each))),
      ...projects
        .filter(isShared)
        .toSorted((one, other) => one.length - other.length)
        .flat(),
    ];
  }
}

/** Returns the rank of a file. A file in the list has a higher rank than a file of any size. */
async function rankOf(path: string): Promise<number> {
  const place = slowest.findIndex((file) => path.endsWith(`/${file}`));
  return place === -1 ? (await stat(path)).size : Number.MAX_SAFE_INTEGER - place;
}

/** Spreads the files of each project evenly over the list. */
function alternated(projects: readonly (readonly TestSpecification[])[]): readonly TestSpecification[] {
  return projects
    .flatMap((files) => files.map((file, index) => ({ file, place: index / files.length })))
    .toSorted((one, other) => one.place - other.place)
    .map(({ file }) => file);
}
