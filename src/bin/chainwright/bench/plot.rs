//! CPU times as a drawing.

use plotters::prelude::*;

use super::Record;

/// Draws CPU time over the number of chains, both on logarithmic scales.
pub(super) fn draw(records: &[Record]) -> Result<String, Box<dyn std::error::Error>> {
    let points: Vec<(&str, f64, f64)> = records
        .iter()
        .flat_map(|record| {
            let chains = record.chains.unwrap_or_default() as f64;
            record.contenders.iter().map(move |contender| {
                let milliseconds = (contender.cpu_ns as f64 / 1e6).max(1e-3);
                (contender.name.as_str(), chains, milliseconds)
            })
        })
        .collect();
    let range = |value: fn(&(&str, f64, f64)) -> f64| {
        let least = points.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(value).fold(0.0, f64::max);
        (least / 1.5)..(most * 1.5)
    };
    let mut drawing = String::new();
    let root = SVGBackend::with_string(&mut drawing, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Listing chains: CPU time", ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            range(|point| point.1).log_scale(),
            range(|point| point.2).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("chains")
        .y_desc("CPU, ms (median)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y}"))
        .light_line_style(WHITE)
        .draw()?;
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in &points {
        if !names.contains(name) {
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
        chart
            .draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        chart.draw_series(
            line.iter()
                .map(|&point| Circle::new(point, 4, color.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    drop(chart);
    drop(root);
    Ok(drawing)
}
