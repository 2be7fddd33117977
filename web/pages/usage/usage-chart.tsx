import type { JSX } from "preact";

/** Units of the drawing: a column is 10 wide, and the drawing 100 high. */
const column = 10;
const top = 4;

interface ChartValues {
  readonly now: readonly (number | null)[];
  readonly before: readonly (number | null)[];
  readonly highest: number;
}

interface ChartOptions extends ChartValues {
  readonly isSum: boolean;
  /** Whether a time was recorded. */
  readonly isKnown: (place: number) => boolean;
  readonly isBad: boolean;
  readonly label: string;
  /** The time that is not over yet. */
  readonly open: number | null;
  readonly marked: number | null;
  readonly onMark: (place: number | null) => void;
  readonly onOpen: (place: number) => void;
}

/** Bars or a line by time, from zero, with the period before as a dashed line. What is not known is hatched. */
export function UsageChart(options: ChartOptions): JSX.Element {
  const { now, before, highest, isSum, isKnown, isBad, label, open, marked, onMark, onOpen } = options;
  const width = now.length * column;
  const y = (value: number): number => 100 - ((100 - top) * value) / (highest || 1);
  const placeOf = (event: MouseEvent): number => {
    const { left, width: drawn } = (event.currentTarget as SVGSVGElement).getBoundingClientRect();
    return Math.max(0, Math.min(now.length - 1, Math.floor(((event.clientX - left) / drawn) * now.length)));
  };
  return (
    <svg
      class={`usage-chart${isBad ? " bad-bars" : ""}`}
      viewBox={`0 0 ${width} 100`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      onPointerMove={(event) => onMark(placeOf(event))}
      onPointerLeave={() => onMark(null)}
      onClick={(event) => onOpen(placeOf(event))}
    >
      <path class="rule" d={`M0 ${top}H${width}M0 100H${width}`} />
      {marked !== null && <rect class="mark" x={marked * column} y="0" width={column} height="100" />}
      {now.map((value, at) => {
        if (!isKnown(at))
          return <rect key={at} class="gap" x={at * column} y={top} width={column} height={100 - top} />;
        if (!isSum || value === null || value <= 0) return null;
        const state = at === marked ? " chosen" : at === open ? " open" : "";
        return (
          <rect
            key={at}
            class={`bar${state}`}
            x={at * column + 1.5}
            y={y(value)}
            width={column - 3}
            height={100 - y(value)}
          />
        );
      })}
      <path class="prev" d={isSum ? stepsOf(before, y) : lineOf(before, y)} />
      {!isSum && <path class="now" d={lineOf(now, y)} />}
    </svg>
  );
}

/** A line along the tops of columns, with gaps where a value is missing. */
function stepsOf(values: readonly (number | null)[], y: (value: number) => number): string {
  let isOpen = false;
  return values
    .map((value, at) => {
      if (value === null) {
        isOpen = false;
        return "";
      }
      const part = `${isOpen ? "V" : `M${at * column} `}${y(value).toFixed(1)}H${(at + 1) * column}`;
      isOpen = true;
      return part;
    })
    .join("");
}

/** A line through the middle of columns, with gaps where a value is missing. A value alone is a short line. */
function lineOf(values: readonly (number | null)[], y: (value: number) => number): string {
  return values
    .map((value, at) => {
      if (value === null) return "";
      const isFirst = (values[at - 1] ?? null) === null;
      const isAlone = isFirst && (values[at + 1] ?? null) === null;
      const middle = at * column + column / 2;
      const height = y(value).toFixed(1);
      return isAlone ? `M${middle - 2} ${height}h4` : `${isFirst ? "M" : "L"}${middle} ${height}`;
    })
    .join("");
}

/** A small line of a row. */
export function SmallLine({ now, before, highest }: ChartValues): JSX.Element {
  const y = (value: number): number => 96 - (92 * value) / (highest || 1);
  return (
    <svg
      class="small-line"
      viewBox={`0 0 ${now.length * column} 100`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path class="prev" d={lineOf(before, y)} />
      <path class="now" d={lineOf(now, y)} />
    </svg>
  );
}

/** The greatest value, which is the top of a scale that begins at zero. */
export function highestOf(...lists: readonly (readonly (number | null)[])[]): number {
  return Math.max(0, ...lists.flatMap((values) => values.flatMap((value) => value ?? [])));
}
