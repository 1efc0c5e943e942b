//! The picture: load and success over time, one line a strategy.

use std::{error::Error, fmt, path::Path};

use plotters::{coord::Shift, prelude::*};

use super::{
    figures::{Figures, Moment},
    scenario::{Scenario, TroubleKind},
};

const SIZE: (u32, u32) = (900, 590);
const HEAD: u32 = 34;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(60, 60, 60);
/// Told apart without colour too: by width, by dashes, and by order. The last is the one that is looked at.
const FIRST: (RGBColor, u32) = (RGBColor(130, 130, 130), 2);
const BETWEEN: [(RGBColor, u32); 3] =
    [(RGBColor(213, 94, 0), 2), (RGBColor(0, 158, 115), 2), (RGBColor(204, 121, 167), 2)];
const LAST: (RGBColor, u32) = (RGBColor(0, 114, 178), 3);

/// The picture could not be drawn or written.
#[derive(Debug)]
pub struct PictureError(Box<dyn Error + Send + Sync>);

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the picture cannot be drawn: {}", self.0)
    }
}

impl Error for PictureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// Draws these runs of one scenario into an SVG file: requests that reach the server, and calls that succeed.
///
/// The first run is drawn dashed and grey, the last one thick and blue: give them in the order "no retry", others, the
/// policy in question.
///
/// # Errors
///
/// When the file cannot be written.
pub fn draw(scenario: &Scenario, runs: &[Figures], path: &Path) -> Result<(), PictureError> {
    paint(scenario, runs, path).map_err(PictureError)
}

type Painted = Result<(), Box<dyn Error + Send + Sync>>;

fn paint(scenario: &Scenario, runs: &[Figures], path: &Path) -> Painted {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, panels) = root.split_vertically(HEAD);
    head.draw(&Text::new(title(scenario), (10, 10), TextStyle::from((FONT, 20)).color(&INK)))?;
    let (upper, lower) = panels.split_vertically((SIZE.1 - HEAD) / 2);
    let rates = |figures: &Figures| {
        let step = figures.step.as_secs_f64();
        figures.moments.iter().map(move |moment| moment.arrivals as f64 / step).fold(0.0, f64::max)
    };
    let most = runs.iter().map(rates).fold(scenario.server.capacity, f64::max);
    let arrivals = |figures: &Figures, moment: &Moment| Some(moment.arrivals as f64 / figures.step.as_secs_f64());
    let load = Panel { title: "requests that reach the server each second", top: most * 1.15, load: true };
    load.paint(&upper, scenario, runs, arrivals)?;
    let success = Panel { title: "calls that succeed, by when they began (%)", top: 106.0, load: false };
    success.paint(&lower, scenario, runs, |_, moment| {
        (moment.calls > 0).then(|| 100.0 * moment.succeeded as f64 / moment.calls as f64)
    })?;
    root.present()?;
    Ok(())
}

fn title(scenario: &Scenario) -> String {
    let clients = scenario.clients;
    format!("{}: {clients} clients, {} calls a second each", scenario.name, scenario.rate)
}

struct Panel {
    title: &'static str,
    top: f64,
    load: bool,
}

impl Panel {
    fn paint<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scenario: &Scenario,
        runs: &[Figures],
        value: impl Fn(&Figures, &Moment) -> Option<f64>,
    ) -> Painted
    where
        DB::ErrorType: 'static,
    {
        let length = scenario.length.as_secs_f64();
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, (FONT, 17).into_font().color(&INK))
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(55)
            .build_cartesian_2d(0.0..length, 0.0..self.top)?;
        let (from, until) = (scenario.trouble.from.as_secs_f64(), scenario.trouble.until.as_secs_f64().min(length));
        chart.draw_series([Rectangle::new([(from, 0.0), (until, self.top)], RGBColor(240, 240, 240).filled())])?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(222, 222, 222))
            .axis_style(INK)
            .x_desc("seconds")
            .label_style((FONT, 13).into_font().color(&INK))
            .y_label_formatter(&|value| format!("{value:.0}"))
            .x_label_formatter(&|value| format!("{value:.0}"))
            .draw()?;
        if self.load {
            let capacity = scenario.server.capacity;
            let style = ShapeStyle::from(&INK).stroke_width(1);
            let left = match scenario.trouble.kind {
                TroubleKind::BrownOut { capacity: left } => capacity * left,
                _ => capacity,
            };
            let steps =
                [(0.0, capacity), (from, capacity), (from, left), (until, left), (until, capacity), (length, capacity)];
            chart.draw_series(DashedLineSeries::new(steps, 2, 3, style))?;
            let text = TextStyle::from((FONT, 13)).color(&INK);
            chart.draw_series([Text::new("capacity", (length * 0.93, capacity + self.top * 0.06), text)])?;
        }
        for (index, figures) in runs.iter().enumerate() {
            let (colour, width) = match index {
                0 => FIRST,
                _ if index + 1 == runs.len() => LAST,
                _ => BETWEEN.get(index - 1).copied().unwrap_or(FIRST),
            };
            let style = ShapeStyle::from(&colour).stroke_width(width);
            let step = figures.step.as_secs_f64();
            let points = figures
                .moments
                .iter()
                .enumerate()
                .filter_map(|(at, moment)| value(figures, moment).map(|value| ((at as f64 + 0.5) * step, value)));
            // Dashed: it lies under the others for long stretches.
            let series = match index {
                0 => chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
                _ => chart.draw_series(LineSeries::new(points, style))?,
            };
            let gap = if index == 0 { 9 } else { 0 };
            series.label(&figures.name).legend(move |(x, y)| {
                let half = (22 - gap) / 2;
                let dash = |from: i32, to: i32| PathElement::new([(x + from, y), (x + to, y)], style);
                EmptyElement::at((0, 0)) + dash(0, half) + dash(half + gap, 22)
            });
        }
        if self.load {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.9))
                .border_style(RGBColor(200, 200, 200))
                .label_font((FONT, 14).into_font().color(&INK))
                .draw()?;
        }
        Ok(())
    }
}
