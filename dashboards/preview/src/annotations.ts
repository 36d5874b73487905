// Annotations, made from Prometheus' samples and drawn over graphs in the same way as Grafana.
import { colorManipulator, rangeUtil } from '@grafana/data';
import { useLayoutEffect } from 'react';
import { intervals, Prometheus, written } from './prometheus';

type Mark = { from: number; to: number; color: string };
const drawn = (window as any).__drawn;
const plots = new Set<any>();
let marks: Mark[] = [];

// samples that are at most one step apart are one annotation; with `useValueForTime` the value is the time of the sample
function grouped(times: number[], step: number, color: string): Mark[] {
  const found: Mark[] = [];
  for (const at of times) {
    const last = found.at(-1);
    if (last && last.to + step >= at) last.to = at;
    else found.push({ from: at, to: at, color });
  }
  return found;
}

export async function load(dashboard: any, source: Prometheus, range: any, interpolate: (text: string, scoped: any, format: any) => string) {
  const asked = dashboard.annotations.list.filter((one: any) => one.expr && one.enable);
  const found = await Promise.all(asked.map(async (one: any) => {
    const step = rangeUtil.intervalToSeconds(one.step ?? '60s');
    const series = await source.series(interpolate(one.expr, intervals(range, step), written), range, step);
    return series.flatMap(({ values }) => {
      const times = values.filter(([, value]) => one.useValueForTime || Number(value) > 0).map(([at, value]) => one.useValueForTime ? Math.floor(Number(value)) : at * 1000);
      return grouped(times, step * 1000, one.iconColor);
    });
  }));
  marks = found.flat();
  drawn.regions = marks.filter((one) => one.to > one.from).length;
  drawn.marks = marks.length;
  plots.forEach((plot) => plot.redraw());
}

// a dashed line at each end, and a tenth of the colour between them: regions that overlap add up
export function Annotations({ config, theme }: { config: any; theme: any }) {
  useLayoutEffect(() => {
    config.addHook('draw', (plot: any) => {
      plots.add(plot);
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.lineWidth = 2;
      ctx.setLineDash([5, 5]);
      for (const one of marks) {
        const color = theme.visualization.getColorByName(one.color);
        const [left, right] = [one.from, one.to].map((at) => plot.valToPos(at, 'x', true));
        ctx.strokeStyle = color;
        for (const x of new Set([left, right])) {
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
        }
        if (one.to > one.from) {
          ctx.fillStyle = colorManipulator.alpha(color, 0.1);
          ctx.fillRect(left, bbox.top, right - left, bbox.height);
        }
      }
      ctx.restore();
    });
  }, [config, theme]);
  return null;
}
