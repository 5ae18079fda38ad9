//! Charts of times.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::Record;

/// A chart of times by size, on logarithmic scales.
#[derive(Debug)]
pub(crate) struct Chart {
    caption: String,
    x: &'static str,
    y: &'static str,
    /// Contender, size and time.
    points: Vec<(String, f64, f64)>,
}

/// Returns charts of CPU time by number of chains.
pub(crate) fn chains(records: &[Record]) -> Vec<Chart> {
    let points = records.iter().flat_map(|record| {
        let chains = record.chains.unwrap_or_default() as f64;
        record
            .contenders
            .iter()
            .map(move |c| (c.name.clone(), chains, milliseconds(c.cpu_ns)))
    });
    vec![Chart {
        caption: "Listing chains: CPU time".into(),
        x: "chains",
        y: "CPU, ms (median)",
        points: points.collect(),
    }]
}

/// Returns charts of times by number of services, for some of the measurements.
pub(crate) fn services(records: &[Record]) -> Vec<Chart> {
    let chart = |(measured, by_clock): (&'static str, bool)| {
        let of_it = records.iter().filter(|record| record.measured == measured);
        let points = of_it.flat_map(|record| {
            let services = record.services.unwrap_or_default() as f64;
            record.contenders.iter().map(move |contender| {
                let name = match record.layout {
                    Some(layout) if contender.name != layout => {
                        format!("{layout}, {}", contender.name)
                    }
                    _ => contender.name.clone(),
                };
                let time = if by_clock {
                    contender.wall_ns
                } else {
                    contender.cpu_ns
                };
                (name, services, milliseconds(time))
            })
        });
        let (of, y) = match by_clock {
            true => ("latency", "ms (median)"),
            false => ("CPU time", "CPU, ms (median)"),
        };
        Chart {
            caption: format!("{measured}: {of}"),
            x: "services",
            y,
            points: points.collect(),
        }
    };
    let charts = super::services::PLOTTED.into_iter().map(chart);
    charts.filter(|chart| !chart.points.is_empty()).collect()
}

fn milliseconds(nanoseconds: u128) -> f64 {
    (nanoseconds as f64 / 1e6).max(1e-3)
}

/// Draws the charts, two per row.
pub(crate) fn draw(charts: &[Chart]) -> Result<String, Box<dyn std::error::Error>> {
    let columns = charts.len().clamp(1, 2);
    let rows = charts.len().div_ceil(columns).max(1);
    let mut drawing = String::new();
    let size = (900 * columns as u32, 560 * rows as u32);
    let root = SVGBackend::with_string(&mut drawing, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (chart, area) in charts.iter().zip(root.split_evenly((rows, columns))) {
        draw_one(chart, &area)?;
    }
    root.present()?;
    drop(root);
    Ok(drawing)
}

fn draw_one(
    chart: &Chart,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = &chart.points;
    let range = |value: fn(&(String, f64, f64)) -> f64| {
        let least = points.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(value).fold(0.0, f64::max);
        (least / 1.5)..(most * 1.5)
    };
    let mut measure_and_plot = ChartBuilder::on(area)
        .caption(&chart.caption, ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            range(|point| point.1).log_scale(),
            range(|point| point.2).log_scale(),
        )?;
    measure_and_plot
        .configure_mesh()
        .x_desc(chart.x)
        .y_desc(chart.y)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y}"))
        .light_line_style(WHITE)
        .draw()?;
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in points {
        if !names.contains(&&name[..]) {
            names.push(name);
        }
    }
    for (index, name) in names.into_iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let line: Vec<_> = points
            .iter()
            .filter(|point| point.0 == name)
            .map(|point| (point.1, point.2))
            .collect();
        measure_and_plot
            .draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        measure_and_plot.draw_series(
            line.iter()
                .map(|&point| Circle::new(point, 4, color.filled())),
        )?;
    }
    measure_and_plot
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
