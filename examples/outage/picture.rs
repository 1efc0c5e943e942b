//! The picture: success and load over the day, one line a client.

use std::path::Path;

use plotters::prelude::*;
use tower::BoxError;

use crate::{
    day::PHASES,
    run::{Day, Moment},
};

const SIZE: (u32, u32) = (900, 590);
const FOOT: u32 = 30;
const FONT: &str = "sans-serif";

/// Told apart without colour too: by width and by order.
fn style(client: &str) -> (RGBColor, u32) {
    match client {
        "none" => (RGBColor(130, 130, 130), 2),
        "naive" => (RGBColor(213, 94, 0), 2),
        _ => (RGBColor(0, 114, 178), 3),
    }
}

fn label(client: &str) -> &str {
    match client {
        "none" => "no retries",
        "naive" => "naive loop",
        other => other,
    }
}

pub fn draw(day: &Day, path: &Path) -> Result<(), BoxError> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (panels, foot) = root.split_vertically(SIZE.1 - FOOT);
    let (upper, lower) = panels.split_vertically((SIZE.1 - FOOT) / 2);
    let success = |moment: &Moment| 100.0 * moment.ok as f64 / moment.calls.max(1) as f64;
    panel(&upper, day, "calls that succeed (%)", 109.0, true, success)?;
    let rate = |moment: &Moment| moment.sent as f64 / day.step.as_secs_f64();
    let most = day.clients.iter().flat_map(|client| &client.series).map(rate).fold(0.0, f64::max);
    panel(&lower, day, "requests sent each second", most * 1.2, false, rate)?;
    let writes = day.clients.iter().map(|client| format!("{} {}", label(client.name), client.duplicate_writes));
    let writes = format!("writes carried out twice:   {}", writes.collect::<Vec<_>>().join(",   "));
    foot.draw(&Text::new(writes, (55, 2), TextStyle::from((FONT, 17)).color(&BLACK)))?;
    root.present()?;
    Ok(())
}

fn panel<DB: DrawingBackend>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    day: &Day,
    title: &str,
    top: f64,
    legend: bool,
    value: impl Fn(&Moment) -> f64,
) -> Result<(), BoxError>
where
    DB::ErrorType: 'static,
{
    let length = day.length.as_secs_f64();
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 17))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(45)
        .build_cartesian_2d(0.0..length, 0.0..top)?;
    let width = length / PHASES.len() as f64;
    for (index, phase) in PHASES.iter().enumerate() {
        let (left, right) = (width * index as f64, width * (index + 1) as f64);
        if index % 2 == 1 {
            chart.draw_series([Rectangle::new([(left, 0.0), (right, top)], RGBColor(244, 244, 244).filled())])?;
        }
        let text = TextStyle::from((FONT, 13)).color(&RGBColor(90, 90, 90));
        chart.draw_series([Text::new(phase.name(), (left + width * 0.04, top * 0.985), text)])?;
    }
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_desc("seconds")
        .label_style((FONT, 13))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .x_label_formatter(&|value| format!("{value}"))
        .draw()?;
    for client in &day.clients {
        let (colour, stroke) = style(client.name);
        let points = client.series.iter().enumerate().map(|(index, moment)| {
            let at = (index as f64 + 0.5) * day.step.as_secs_f64();
            (at, value(moment))
        });
        let style = ShapeStyle::from(&colour).stroke_width(stroke);
        let series = match client.name {
            // Dashed: it lies under the others for long stretches.
            "none" => chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
            _ => chart.draw_series(LineSeries::new(points, style))?,
        };
        let gap = if client.name == "none" { 9 } else { 0 };
        series.label(label(client.name)).legend(move |(x, y)| {
            let half = (22 - gap) / 2;
            let dash = |from: i32, to: i32| PathElement::new([(x + from, y), (x + to, y)], style);
            EmptyElement::at((0, 0)) + dash(0, half) + dash(half + gap, 22)
        });
    }
    if legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.9))
            .border_style(RGBColor(200, 200, 200))
            .label_font((FONT, 14))
            .draw()?;
    }
    Ok(())
}
