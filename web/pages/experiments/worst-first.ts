import type { Experiment } from "../../api/types.ts";

type Row = Experiment["rows"][number];
type Cell = Row["cells"][number];

/** A case as the table shows it. */
export interface CaseLine {
  readonly row: Row;
  /** The case in the experiment that is compared with. `null` if that has no such case, or nothing is compared. */
  readonly before: Row | null;
  /** The largest fall of a score: below 0 if one fell. `null` if nothing can be compared. */
  readonly change: number | null;
  /** The lowest mean of a score. `null` if nothing was scored. */
  readonly lowest: number | null;
}

/**
 * The cases of an experiment, what got worse first: against the other experiment if there is one, and otherwise against the first
 * variant. Cases that cannot be compared follow, the lowest score first.
 */
export function worstFirst({ rows, baselineRows, variants }: Experiment): readonly CaseLine[] {
  const others = new Map((baselineRows ?? []).map((row) => [row.caseId, row]));
  const lines = rows.map((row): CaseLine => {
    const before = others.get(row.caseId) ?? null;
    const changes =
      baselineRows === null
        ? changesTo(
            row.cells.find(({ variant }) => variant === variants[0]),
            row.cells,
          )
        : row.cells.flatMap((cell) => changesTo(cellOf(before, cell.variant), [cell]));
    const means = row.cells.flatMap(({ scores }) => Object.values(scores).filter((mean) => mean !== null));
    return {
      row,
      before,
      change: changes.length === 0 ? null : Math.min(...changes),
      lowest: means.length === 0 ? null : Math.min(...means),
    };
  });
  return lines.toSorted(
    (one, other) =>
      (one.change ?? 0) - (other.change ?? 0) ||
      (one.lowest ?? 2) - (other.lowest ?? 2) ||
      one.row.caseId.localeCompare(other.row.caseId),
  );
}

/** Lines in an order that was shown before, so that no line moves while results arrive. New cases follow in their own order. */
export function inShownOrder(lines: readonly CaseLine[], shown: readonly string[]): readonly CaseLine[] {
  const places = new Map(shown.map((caseId, place) => [caseId, place]));
  const placeOf = ({ row }: CaseLine): number => places.get(row.caseId) ?? shown.length;
  return lines.toSorted((one, other) => placeOf(one) - placeOf(other));
}

/** The cases that only the other experiment has. */
export function onlyBefore({ rows, baselineRows }: Experiment): readonly Row[] {
  const own = new Set(rows.map(({ caseId }) => caseId));
  return (baselineRows ?? []).filter(({ caseId }) => !own.has(caseId));
}

/** The cell of a variant. An experiment with one variant is compared whatever the name of its variant is. */
export function cellOf(row: Row | null, variant: string): Cell | undefined {
  if (row === null) return undefined;
  const [only, second] = row.cells;
  return row.cells.find((cell) => cell.variant === variant) ?? (second === undefined ? only : undefined);
}

function changesTo(before: Cell | undefined, cells: readonly Cell[]): readonly number[] {
  if (before === undefined) return [];
  return cells
    .filter((cell) => cell !== before)
    .flatMap(({ scores }) =>
      Object.entries(scores).flatMap(([scorer, mean]) => {
        const former = before.scores[scorer] ?? null;
        return mean === null || former === null ? [] : [mean - former];
      }),
    );
}

/** The number of cases by their mean, in ten parts from 0 to 1. */
export function distribution(rows: readonly Row[], scorer: string, variant: string): readonly number[] {
  const parts = Array<number>(10).fill(0);
  for (const row of rows) {
    const mean = row.cells.find((cell) => cell.variant === variant)?.scores[scorer] ?? null;
    if (mean === null) continue;
    const part = Math.min(9, Math.floor(mean * 10));
    parts[part] = (parts[part] ?? 0) + 1;
  }
  return parts;
}
