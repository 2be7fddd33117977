import { stat } from "node:fs/promises";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Alternates the files of all isolated projects, so that suites that wait for processes run beside suites that need the
 * processor. The files of a project are in the order of their size, the largest first. The projects whose files share a
 * process follow in one block each, because Vitest ends such a process when the next file belongs to another project.
 */
export class AlternatingProjects extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sized = await Promise.all(
      files.map(async (file) => ({ file, size: (await stat(file.moduleId)).size })),
    );
    const largestFirst = sized.toSorted((one, other) => other.size - one.size).map(({ file }) => file);
    const projects = [...Map.groupBy(largestFirst, ({ project }) => project.name).values()];
    return [
      ...alternated(projects.filter(([file]) => file?.project.config.isolate !== false)),
      ...projects.filter(([file]) => file?.project.config.isolate === false).flat(),
    ];
  }
}

/** Spreads the files of each project evenly over the list. */
function alternated(projects: readonly (readonly TestSpecification[])[]): readonly TestSpecification[] {
  return projects
    .flatMap((files) => files.map((file, index) => ({ file, place: index / files.length })))
    .toSorted((one, other) => one.place - other.place)
    .map(({ file }) => file);
}
