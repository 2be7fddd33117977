import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Alternates the files of all isolated projects, so that suites that wait for processes run beside suites that need the
 * processor. Each project keeps the order of Vitest for its own files. The projects whose files share a process follow in
 * one block each, because Vitest ends such a process when the next file belongs to another project.
 */
export class AlternatingProjects extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isolated = sorted.filter(({ project }) => project.config.isolate);
    const shared = sorted.filter(({ project }) => !project.config.isolate);
    return [...alternated(isolated), ...shared];
  }
}

/** Spreads the files of each project evenly over the list. */
function alternated(files: readonly TestSpecification[]): readonly TestSpecification[] {
  const projects = Map.groupBy(files, ({ project }) => project.name);
  return [...projects.values()]
    .flatMap((own) => own.map((file, index) => ({ file, place: index / own.length })))
    .toSorted((one, other) => one.place - other.place)
    .map(({ file }) => file);
}
