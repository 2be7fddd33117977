import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("bugs/", import.meta.url));

/** A bug as a patch of the sources, with the workload that finds it. */
export interface PlantedBug {
  readonly name: string;
  readonly path: string;
  readonly workload: string;
}

/** The planted bugs, by name. Throws if a patch names no workload. */
export function plantedBugs(): readonly PlantedBug[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".patch"))
    .toSorted()
    .map((file) => {
      const path = `${folder}${file}`;
      const workload = /^Workload: (\w+)$/mu.exec(readFileSync(path, "utf8"))?.[1];
      if (workload === undefined) throw new Error(`${file} names no workload: add a line "Workload: NAME"`);
      return { name: file.slice(0, -".patch".length), path, workload };
    });
}
